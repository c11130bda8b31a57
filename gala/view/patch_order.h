#pragma once
// For host and device alike. C++17, since nvcc compiles it too.
#include <cstdint>

#include "gala/base/compiler.h"
#include "gala/view/counter_random.h"

namespace gala {

constexpr std::int32_t kMostGrid = 32;
constexpr std::int32_t kMostPatches = kMostGrid * kMostGrid;

/// Which patch goes to each place of an image: an order of 0 .. count-1. Every order is as likely as any
/// other, to one part in 2^50 (Fisher and Yates, each step from 64 bits).
GALA_ON_BOTH inline void order_patches(std::uint64_t seed, std::int64_t image, std::int32_t count,
                                       std::int16_t* order) {
  for (std::int32_t i = 0; i < count; ++i) order[i] = static_cast<std::int16_t>(i);
  const std::uint64_t counter = static_cast<std::uint64_t>(image) * kMostPatches;
  for (std::int32_t i = count - 1; i > 0; --i) {
    const auto bound = static_cast<std::uint64_t>(i) + 1;
    const std::uint64_t other =
        counted_long_word(seed, counter + static_cast<std::uint64_t>(i)) % bound;
    const std::int16_t held = order[i];
    order[i] = order[other];
    order[other] = held;
  }
}

}  // namespace gala
