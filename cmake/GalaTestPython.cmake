# GALA_TEST_PYTHON: a Python with torch, which makes the files and numbers that tests compare with.
# Looked for beside the LibTorch package (it may lie in a virtual environment), then on the path.
# Empty when there is none; a value given by the user is checked and otherwise left alone.
#
# gala_add_test_fixture(NAME name SCRIPT file.py [ARGUMENTS ...]) runs `python file.py FOLDER ...`
# as a ctest fixture `name`, FOLDER being ${PROJECT_BINARY_DIR}/fixtures/<name>. Without a Python
# nothing is added, the folder stays missing, and tests that need it must skip.
include_guard(GLOBAL)

function(_gala_python_has_torch python result)
  execute_process(
    COMMAND ${python} -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

set(GALA_TEST_PYTHON "" CACHE FILEPATH "A Python with torch, for the tests that compare with PyTorch")
if(GALA_TEST_PYTHON)
  _gala_python_has_torch(${GALA_TEST_PYTHON} _gala_found)
  if(NOT _gala_found)
    message(FATAL_ERROR "GALA_TEST_PYTHON=${GALA_TEST_PYTHON} cannot import torch")
  endif()
else()
  set(_gala_candidates "")
  if(TORCH_INSTALL_PREFIX MATCHES "^(.*)/lib(64)?/python3[^/]*/(site|dist)-packages/torch/?$")
    list(APPEND _gala_candidates ${CMAKE_MATCH_1}/bin/python ${CMAKE_MATCH_1}/bin/python3)
  endif()
  find_program(_gala_path_python NAMES python3 python NO_CACHE)
  if(_gala_path_python)
    list(APPEND _gala_candidates ${_gala_path_python})
  endif()
  foreach(_gala_candidate IN LISTS _gala_candidates)
    if(EXISTS ${_gala_candidate})
      _gala_python_has_torch(${_gala_candidate} _gala_found)
      if(_gala_found)
        set(GALA_TEST_PYTHON ${_gala_candidate} CACHE FILEPATH
            "A Python with torch, for the tests that compare with PyTorch" FORCE)
        break()
      endif()
    endif()
  endforeach()
  if(NOT GALA_TEST_PYTHON)
    message(STATUS "No Python with torch: tests that compare with PyTorch will be skipped")
  endif()
endif()

function(gala_add_test_fixture)
  cmake_parse_arguments(arg "" "NAME;SCRIPT" "ARGUMENTS" ${ARGN})
  if(NOT GALA_TEST_PYTHON)
    return()
  endif()
  set(test gala_fixture_${arg_NAME})
  add_test(NAME ${test} COMMAND ${GALA_TEST_PYTHON} ${arg_SCRIPT}
                                ${PROJECT_BINARY_DIR}/fixtures/${arg_NAME} ${arg_ARGUMENTS})
  # Others wait for it, so it is begun early.
  set_tests_properties(${test} PROPERTIES FIXTURES_SETUP ${arg_NAME} LABELS fixture TIMEOUT 600 COST 400
                                          ENVIRONMENT "OMP_NUM_THREADS=1")
endfunction()
