# Builds gala_core alone, in a folder that knows of no LibTorch, and runs its tests.
function(step name)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${name} failed (${status}):\n${output}")
  endif()
endfunction()

step("configure" ${CMAKE_COMMAND} -E env --unset=GALA_TORCH ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} -G
     ${GENERATOR} -DGALA_CORE_ONLY=ON -DGALA_TESTS=ON -DGALA_CUDA=OFF -DCMAKE_CXX_COMPILER=${CXX}
     -DGALA_FMT_INCLUDE_DIR=${FMT} -DNLOHMANN_JSON_INCLUDE_DIR=${JSON})
step("build" ${CMAKE_COMMAND} --build ${WORK} --parallel 2)
step("test" ${WORK}/tests/step/gala_test_heart)
execute_process(COMMAND ldd ${WORK}/tests/step/gala_test_heart OUTPUT_VARIABLE libraries)
if(libraries MATCHES "torch|c10")
  message(FATAL_ERROR "the numeric heart links LibTorch:\n${libraries}")
endif()
