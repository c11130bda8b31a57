#include "gala/select/auto_rgn.h"

#include <algorithm>
#include <cmath>

namespace gala {

std::vector<double> AutoRgnSelector::select(const Proposal& proposal) {
  std::vector<double> weights;
  for (const LayerSums& sums : proposal.sums) {
    // A layer of zeros has no scale to compare with: it does not move.
    weights.push_back(sums.value_sq > 0 ? std::sqrt(sums.gradient_sq / sums.value_sq) : 0.0);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  if (largest > 0) {
    for (double& weight : weights) weight /= largest;
  }
  return weights;
}

}  // namespace gala
