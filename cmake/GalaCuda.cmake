# The CUDA part. It is built in where LibTorch has CUDA and nvcc is found. Where nvcc is found but
# LibTorch is a CPU build it is compiled all the same, and left out of the library, so that it cannot
# rot; elsewhere its place is taken by sources that say there is none.
option(GALA_CUDA "Use CUDA where it is found" ON)

set(GALA_CUDA_MODE off)
if(GALA_CUDA)
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  check_language(CUDA)
  find_package(CUDAToolkit QUIET)
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    enable_language(CUDA)
    if(GALA_CORE_ONLY OR EXISTS ${TORCH_INSTALL_PREFIX}/lib/libtorch_cuda.so)
      set(GALA_CUDA_MODE built)
    elseif(EXISTS ${TORCH_INSTALL_PREFIX}/include/c10/cuda/CUDAStream.h)
      set(GALA_CUDA_MODE checked)
    endif()
  endif()
endif()
message(STATUS "CUDA: ${GALA_CUDA_MODE}")

if(GALA_CUDA_MODE STREQUAL "checked")
  # The one header that a CPU build of LibTorch lacks; it says how that build was made.
  file(WRITE ${PROJECT_BINARY_DIR}/cuda_stand_in/c10/cuda/impl/cuda_cmake_macros.h "#pragma once\n")
endif()

# LibTorch's header of NCCL names types of the toolkit's libraries. Where their headers are missing a build
# does without NCCL; what is only checked gets the types.
find_file(GALA_CUSPARSE_HEADER cusparse.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(GALA_CUSPARSE_HEADER)
if(GALA_CUDA_MODE STREQUAL "checked" AND NOT GALA_CUSPARSE_HEADER)
  set(stand_in ${PROJECT_BINARY_DIR}/cuda_stand_in)
  file(WRITE ${stand_in}/cusparse.h
       "#pragma once\ntypedef struct cusparseContext* cusparseHandle_t;\ntypedef int cusparseStatus_t;\n")
  file(WRITE ${stand_in}/cublas_v2.h
       "#pragma once\ntypedef struct cublasContext* cublasHandle_t;\ntypedef int cublasStatus_t;\n")
  file(WRITE ${stand_in}/cublasLt.h "#pragma once\ntypedef struct cublasLtContext* cublasLtHandle_t;\n")
  file(WRITE ${stand_in}/cusolver_common.h "#pragma once\ntypedef int cusolverStatus_t;\n")
  file(WRITE ${stand_in}/cusolverDn.h
       "#pragma once\n#include <cusolver_common.h>\ntypedef struct cusolverDnContext* cusolverDnHandle_t;\n")
endif()

# gala_cuda_sources(TARGET SOURCES a.cpp.. [KERNELS b.cu..] INSTEAD c.cpp..): sources of the target, in
# the folder that calls it; INSTEAD are those of a build without CUDA.
function(gala_cuda_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;KERNELS;INSTEAD")
  if(NOT GALA_CUDA_MODE STREQUAL "built")
    target_sources(${target} PRIVATE ${arg_INSTEAD})
  else()
    target_sources(${target} PRIVATE ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE CUDA::cudart)
  endif()
  if(GALA_CUDA_MODE STREQUAL "off")
    return()
  endif()
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(arg_KERNELS)
    # A target of its own: nvcc takes none of the flags that the rest is compiled with.
    set(kernels gala_cuda_kernels_${folder})
    add_library(${kernels} OBJECT ${arg_KERNELS})
    set_target_properties(${kernels} PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_STANDARD 17)
    target_include_directories(${kernels} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(${kernels} PRIVATE -fmad=false)
    if(GALA_CUDA_MODE STREQUAL "built")
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${kernels}>)
    endif()
  endif()
  if(GALA_CUDA_MODE STREQUAL "checked")
    set(checked gala_cuda_checked_${folder})
    add_library(${checked} OBJECT ${arg_SOURCES})
    target_compile_features(${checked} PRIVATE cxx_std_20)
    target_include_directories(${checked} PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(${checked} SYSTEM PRIVATE
      ${NLOHMANN_JSON_INCLUDE_DIR} ${PROJECT_BINARY_DIR}/cuda_stand_in ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(${checked} PRIVATE torch gala_flags)
  endif()
endfunction()
