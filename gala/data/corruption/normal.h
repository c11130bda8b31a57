#pragma once
#include <array>
#include <cstdint>

#include "gala/base/random.h"

namespace gala {

/// Standard normal draws by the ziggurat of Marsaglia & Tsang (2000): the density is covered by 128
/// layers of equal area, and nearly every draw costs one random word and one product. Holds only
/// tables; the stream of draws is the generator's.
class NormalSampler {
 public:
  NormalSampler();

  float operator()(Random& random) const {
    const std::uint64_t word = random.next();
    const std::size_t layer = word & (kLayers - 1);
    // 53 bits as a number in [-1, 1); the layer used other bits.
    const double position = static_cast<double>(static_cast<std::int64_t>(word) >> 11) * 0x1.0p-52;
    const double x = position * edges_[layer];
    if (x < edges_[layer + 1] && -x < edges_[layer + 1]) return static_cast<float>(x);
    return outside(random, layer, x);
  }

 private:
  static constexpr std::size_t kLayers = 128;
  float outside(Random& random, std::size_t layer, double x) const;

  // Layer i reaches from 0 to edges_[i]; what lies below edges_[i + 1] is under the curve for sure.
  std::array<double, kLayers + 1> edges_;
};

}  // namespace gala
