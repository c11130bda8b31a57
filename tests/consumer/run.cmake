# Installs gala from BUILD into a fresh prefix and builds and runs the consumer against it.
function(step name)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${name} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
step("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

set(flags "")
if(SANITIZE)
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=address,undefined)
endif()
# The environment could lead to LibTorch, too: the install tree must find it by itself.
step("configure" ${CMAKE_COMMAND} -E env --unset=GALA_TORCH ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build
     -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${TYPE}
     -DCMAKE_PREFIX_PATH=${WORK}/prefix ${flags})
step("build" ${CMAKE_COMMAND} --build ${WORK}/build)
step("run" ${WORK}/build/consumer)
message(STATUS "consumer: ${output}")

# The installed program starts, away from its build folder.
step("gala --help" ${WORK}/prefix/bin/gala --help)
