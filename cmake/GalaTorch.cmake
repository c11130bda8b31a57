# Finds LibTorch and defines the target `torch`. Installed beside galaConfig.cmake, so that this
# project and those that use it find LibTorch in the same way.
#
# LibTorch's own package refuses a CUDA build on a machine without the CUDA toolkit. The toolkit is
# only needed to compile CUDA code: the headers of the CPU part and the libraries suffice to use
# such a build, and that is what a wheel from PyPI usually is.
find_file(
  gala_torch_config TorchConfig.cmake
  HINTS ${Torch_DIR} ${CMAKE_PREFIX_PATH}
  PATH_SUFFIXES Torch share/cmake/Torch
  NO_CACHE NO_DEFAULT_PATH)

set(gala_torch_bare FALSE)
if(gala_torch_config)
  get_filename_component(gala_torch_root ${gala_torch_config}/../../../.. ABSOLUTE)
  if(EXISTS ${gala_torch_root}/lib/libtorch_cuda.so)
    find_package(CUDAToolkit QUIET)
    if(NOT CUDAToolkit_FOUND)
      set(gala_torch_bare TRUE)
    endif()
  endif()
endif()

if(NOT gala_torch_bare)
  find_package(Torch 2.11 REQUIRED)
elseif(NOT TARGET torch)
  include(${gala_torch_root}/share/cmake/Torch/TorchConfigVersion.cmake)
  if(PACKAGE_VERSION VERSION_LESS 2.11)
    message(FATAL_ERROR "LibTorch in ${gala_torch_root} is ${PACKAGE_VERSION}; 2.11 or newer is needed")
  endif()
  message(STATUS "LibTorch ${PACKAGE_VERSION} has CUDA, this machine has no CUDA toolkit: "
                 "using its libraries without it")
  set(TORCH_INSTALL_PREFIX ${gala_torch_root})
  add_library(torch INTERFACE IMPORTED GLOBAL)
  set_target_properties(
    torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
    "${gala_torch_root}/include;${gala_torch_root}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
  # Nothing refers to the CUDA library by name: it registers itself when it is loaded. Its own
  # dependencies are found at run time.
  target_link_options(torch INTERFACE LINKER:--no-as-needed LINKER:--allow-shlib-undefined)
  foreach(library IN ITEMS torch torch_cpu torch_cuda c10 c10_cuda)
    target_link_libraries(torch INTERFACE ${gala_torch_root}/lib/lib${library}.so)
  endforeach()
endif()
