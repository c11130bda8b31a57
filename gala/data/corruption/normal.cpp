#include "gala/data/corruption/normal.h"

#include <cmath>

namespace gala {
namespace {

// Where the tail begins and the area of a layer, for 128 layers under exp(-x^2 / 2).
constexpr double kTail = 3.442619855899;
constexpr double kArea = 9.91256303526217e-3;

double density(double x) {
  return std::exp(-0.5 * x * x);
}

}  // namespace

NormalSampler::NormalSampler() {
  edges_[0] = kArea / density(kTail);  // the lowest layer, as wide as if it had no tail
  edges_[1] = kTail;
  for (std::size_t i = 2; i < kLayers; ++i) {
    edges_[i] = std::sqrt(-2 * std::log(kArea / edges_[i - 1] + density(edges_[i - 1])));
  }
  edges_[kLayers] = 0;
}

float NormalSampler::outside(Random& random, std::size_t layer, double x) const {
  if (layer == 0) {
    // Marsaglia's tail beyond kTail.
    while (true) {
      const double beyond = -std::log(1 - random.uniform()) / kTail;
      if (-2 * std::log(1 - random.uniform()) > beyond * beyond) {
        return static_cast<float>(x < 0 ? -kTail - beyond : kTail + beyond);
      }
    }
  }
  const double low = density(edges_[layer]), high = density(edges_[layer + 1]);
  if (low + random.uniform() * (high - low) < density(x)) return static_cast<float>(x);
  return (*this)(random);
}

}  // namespace gala
