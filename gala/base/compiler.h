#pragma once
// Words for functions that are compiled more than once: for the host and by nvcc, and for several
// instruction sets. Nothing here knows the rest of the library.

#ifdef __CUDACC__
#define GALA_ON_BOTH __host__ __device__
#else
#define GALA_ON_BOTH
#endif

// Clang does not know the widths that GCC is asked for: it gets the plain form, with the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__clang__)
#define GALA_CPU_LEVELS 1
#define GALA_INLINE inline __attribute__((always_inline))
#else
#define GALA_CPU_LEVELS 0
#define GALA_INLINE inline
#endif
