#include "gala/select/relative.h"

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"

namespace gala {

RelativeSelector::RelativeSelector(const Options& options) : options_(options) {
  if (!(options.step > 0)) {
    fail<ConfigError>("selector relative: step must be above 0, not {}", options.step);
  }
  if (!(options.most >= 0)) {
    fail<ConfigError>("selector relative: most must not be negative, not {}", options.most);
  }
}

std::vector<double> RelativeSelector::select(const Proposal& proposal) {
  const double most = options_.most > 0 ? options_.most : kLargestWeight;
  std::vector<double> weights;
  for (const LayerSums& sums : proposal.sums) {
    const double ratio = sums.update_sq > 0 ? std::sqrt(sums.value_sq / sums.update_sq) : 0;
    weights.push_back(std::min(most, options_.step * ratio));
  }
  return weights;
}

}  // namespace gala
