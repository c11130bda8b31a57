# One precompiled header, LibTorch's, and only where it is wanted: loading it takes longer than compiling
# a file that needs nothing of LibTorch.

# gala_reaches_torch(FILE RESULT): whether FILE, below the project's folder, includes a header of
# LibTorch, itself or through headers of the project. A guess from the text at configure time: where it
# is wrong or old, a file takes longer to compile, and nothing else.
function(gala_reaches_torch file result)
  get_property(known GLOBAL PROPERTY gala_reaches_torch:${file})
  if(NOT "${known}" STREQUAL "")
    set(${result} ${known} PARENT_SCOPE)
    return()
  endif()
  set_property(GLOBAL PROPERTY gala_reaches_torch:${file} FALSE)  # for headers that include each other
  set(reaches FALSE)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${file})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${file} includes REGEX "^#include [<\"]")
    foreach(include IN LISTS includes)
      if(include MATCHES "<(ATen|c10|torch)/")
        set(reaches TRUE)
      elseif(include MATCHES "\"([^\"]+)\"")
        gala_reaches_torch(${CMAKE_MATCH_1} reaches)
      endif()
      if(reaches)
        break()
      endif()
    endforeach()
  endif()
  set_property(GLOBAL PROPERTY gala_reaches_torch:${file} ${reaches})
  set(${result} ${reaches} PARENT_SCOPE)
endfunction()

# gala_precompile(TARGET [OWN]): the precompiled header of the target gala (OWN: one of its own) for those
# sources of TARGET that use LibTorch. After all of them were added.
function(gala_precompile target)
  if(target STREQUAL "gala" OR "OWN" IN_LIST ARGN)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/gala/precompiled.h)
  else()
    target_precompile_headers(${target} REUSE_FROM gala)
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    gala_reaches_torch(${path} reaches)
    if(NOT reaches)
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()
