#pragma once

// A function marked so exists once for every processor and once for AVX2; the program chooses when it
// runs. Both give the same bits as long as the arithmetic is on integers, or products are not fused (see
// gala_arithmetic_sources in cmake/GalaCompiler.cmake).
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define GALA_AVX2 1
// The program chooses before ThreadSanitizer has begun its work, and the choice would report to it.
#ifdef __SANITIZE_THREAD__
#define GALA_CLONES
#else
#define GALA_CLONES __attribute__((target_clones("avx2", "default")))
#endif
#else
#define GALA_AVX2 0
#define GALA_CLONES
#endif
