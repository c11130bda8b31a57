#pragma once
// Random numbers that depend on a seed and a counter alone, for host and device: whoever wants the i-th
// asks for it, in any order. C++17, since nvcc compiles it too.
#include <cstdint>

#include "gala/base/compiler.h"

namespace gala {

/// 32 bits spread over 32 bits, one to one: the multipliers of C. Wellons' search for the least bias
/// (lowbias32).
GALA_ON_BOTH GALA_INLINE std::uint32_t spread(std::uint32_t bits) {
  bits ^= bits >> 16;
  bits *= 0x7feb352dU;
  bits ^= bits >> 15;
  bits *= 0x846ca68bU;
  return bits ^ bits >> 16;
}

/// The `counter`-th of 2^32 words. Thirty-two bits at a time, so that the host can make many at once.
GALA_ON_BOTH GALA_INLINE std::uint32_t counted_word(const std::uint32_t (&seed)[2],
                                                    std::uint32_t counter) {
  return spread(spread(counter ^ seed[0]) + seed[1]);
}

/// The `counter`-th of 2^64 words: splitmix64.
GALA_ON_BOTH GALA_INLINE std::uint64_t counted_long_word(std::uint64_t seed,
                                                         std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace gala
