# Everything the project stands on. LibTorch is found through CMAKE_PREFIX_PATH, the variable
# GALA_TORCH of the environment, or what tools/bootstrap chose; the rest through the system or
# through GALA_EXTRA_INCLUDE (header-only packages).
set(GALA_EXTRA_INCLUDE "" CACHE PATH "A folder with the headers of CLI11, nlohmann-json, toml++ and, for the numeric heart alone, {fmt}")

find_package(Threads REQUIRED)
# Linked by the compiler's flag, not by the library's path: at run time it must be the one that LibTorch
# loads. Without it at::parallel_for runs serially.
find_package(OpenMP REQUIRED COMPONENTS CXX)
target_compile_options(gala_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${OpenMP_CXX_FLAGS}>)

# gala_find_header(NAME HEADER): header-only packages are asked for by header, since not every
# distribution ships their CMake files.
macro(gala_find_header name header)
  find_path(${name}_INCLUDE_DIR ${header} HINTS ${GALA_EXTRA_INCLUDE} REQUIRED)
endmacro()
gala_find_header(NLOHMANN_JSON nlohmann/json.hpp)

if(GALA_CORE_ONLY)
  gala_find_header(GALA_FMT fmt/format.h)
  find_package(JPEG QUIET)  # corruptions need it, the heart does not
  return()
endif()

if(NOT "$ENV{GALA_TORCH}" STREQUAL "")
  list(APPEND CMAKE_PREFIX_PATH $ENV{GALA_TORCH} $ENV{GALA_TORCH}/share/cmake
       $ENV{GALA_TORCH}/torch/share/cmake)
elseif(EXISTS ${PROJECT_SOURCE_DIR}/.deps/torch)
  file(STRINGS ${PROJECT_SOURCE_DIR}/.deps/torch gala_torch_prefix LIMIT_COUNT 1)
  list(APPEND CMAKE_PREFIX_PATH ${gala_torch_prefix})
endif()
include(GalaTorch)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
gala_find_header(CLI11 CLI/CLI.hpp)
gala_find_header(TOMLPLUSPLUS toml++/toml.h)

# {fmt} comes as headers with LibTorch. They get a folder of their own, so that the numeric heart sees
# them and nothing else of LibTorch.
set(GALA_FMT_INCLUDE_DIR ${PROJECT_BINARY_DIR}/fmt_headers)
file(MAKE_DIRECTORY ${GALA_FMT_INCLUDE_DIR})
file(CREATE_LINK ${TORCH_INSTALL_PREFIX}/include/fmt ${GALA_FMT_INCLUDE_DIR}/fmt COPY_ON_ERROR SYMBOLIC)
