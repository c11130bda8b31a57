#include "examples/largest_update.h"

#include "gala/base/error.h"

namespace gala {

LargestUpdateSelector::LargestUpdateSelector(const Options& options) : options_(options) {
  if (!(options.least >= 0)) {
    fail<ConfigError>("selector largest_update: least must not be negative, not {}", options.least);
  }
}

std::vector<double> LargestUpdateSelector::select(const Proposal& proposal) {
  std::vector<double> weights(proposal.sums.size(), 0.0);
  std::size_t best = 0;
  double largest = -1;
  for (std::size_t l = 0; l < proposal.sums.size(); ++l) {
    const LayerSums& sums = proposal.sums[l];
    const double relative = sums.value_sq > 0 ? sums.update_sq / sums.value_sq : 0;
    if (relative > largest) {
      largest = relative;
      best = l;
    }
  }
  if (largest > options_.least * options_.least) weights[best] = 1;
  return weights;
}

}  // namespace gala
