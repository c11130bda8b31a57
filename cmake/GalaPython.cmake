# The Python package (docs/python.md). It is the numeric heart alone and its binding: no LibTorch, no
# program, no tests of the library. Headers come from the packages that pyproject.toml asks for.
option(GALA_PYTHON "Build the Python package's binding: no LibTorch, no program" OFF)
if(NOT GALA_PYTHON)
  return()
endif()

# On older CMake the search for the stable ABI's module is not known.
set(gala_python_parts Interpreter Development.Module)
if(DEFINED SKBUILD_SABI_COMPONENT)
  list(APPEND gala_python_parts ${SKBUILD_SABI_COMPONENT})
endif()
find_package(Python 3.10 REQUIRED COMPONENTS ${gala_python_parts})

set(GALA_CORE_ONLY ON)
set(GALA_TESTS OFF)
# The heart stays free of CUDA; the GPU's passes are a library of their own (python/CMakeLists.txt).
set(GALA_CUDA OFF)

# In an isolated build the packages lie wherever that Python looks.
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import sys; print(';'.join(p for p in sys.path if p))"
  OUTPUT_VARIABLE gala_python_path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
foreach(folder IN LISTS gala_python_path)
  foreach(headers IN ITEMS nlohmann_json/include cmeel.prefix/include)
    if(IS_DIRECTORY ${folder}/${headers})
      list(APPEND GALA_EXTRA_INCLUDE ${folder}/${headers})
    endif()
  endforeach()
endforeach()
# Every isolated build has them elsewhere.
unset(NLOHMANN_JSON_INCLUDE_DIR CACHE)
unset(GALA_FMT_INCLUDE_DIR CACHE)
