# Compiler settings shared by the library, the program and the tests. They must stay equal
# everywhere: the precompiled header is shared, and it only fits one set of flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

find_program(GALA_CCACHE ccache)
if(GALA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header defeats ccache unless it may ignore its defines and time stamps.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${GALA_CCACHE})
endif()

add_library(gala_flags INTERFACE)
# -fPIC by hand: CMake would build executables with -fPIE, which the shared header does not fit.
target_compile_options(gala_flags INTERFACE -fPIC)
target_compile_options(gala_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(gala_flags INTERFACE -fpch-preprocess)
  # From 13 on it sees the ends of arrays where there are none, in strings and vectors of its own library: a word
  # to read, which stops nothing.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(gala_flags INTERFACE -Wno-error=array-bounds)
  endif()
endif()
if(GALA_WARNINGS_AS_ERRORS)
  target_compile_options(gala_flags INTERFACE -Werror)
endif()
if(GALA_SANITIZE)
  target_compile_options(gala_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer
                                              -fno-sanitize-recover=undefined)
  target_link_options(gala_flags INTERFACE -fsanitize=address,undefined)
endif()
if(GALA_SANITIZE_THREADS)
  # GCC warns of a fence in LibTorch's headers, which the sanitizer does not see.
  target_compile_options(gala_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer
                                              $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(gala_flags INTERFACE -fsanitize=thread)
endif()
if(GALA_FUZZ)
  # LibTorch hides the type information that two of the checks look at; the third is of a float that does
  # not fit an integer, which the JSON library turns into one unasked wherever a program wants it. Loops
  # that are watched are not vectorised, whatever they ask for.
  target_compile_options(
    gala_flags
    INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr,function,float-cast-overflow
              -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Wno-pass-failed)
  target_link_options(gala_flags INTERFACE -fsanitize=address,undefined)
endif()

# Links quicker where it is found. Before 2.0 it now and then lays out a program that the loader
# refuses ("cannot apply additional memory protection after relocation").
find_program(GALA_MOLD mold)
if(GALA_MOLD)
  execute_process(COMMAND ${GALA_MOLD} --version OUTPUT_VARIABLE gala_mold_version)
  if(gala_mold_version MATCHES "^mold ([0-9.]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 2.0)
    target_link_options(gala_flags INTERFACE -fuse-ld=mold)
  endif()
endif()

# gala_arithmetic_sources(TARGET a.cpp..): sources of the target that are plain arithmetic on pointers, in
# the folder that calls it: square roots without errno, so that they become vectors, and no fused products, so that every
# processor gives the same bits. The precompiled header does not fit these flags.
function(gala_arithmetic_sources target)
  set_source_files_properties(
    ${ARGN}
    TARGET_DIRECTORY ${target}
    PROPERTIES SKIP_PRECOMPILE_HEADERS ON
               COMPILE_OPTIONS "-O3;-fno-math-errno;-fno-trapping-math;-ffp-contract=off")
endfunction()
