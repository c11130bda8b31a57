#include "gala/select/trend.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gala/base/error.h"

namespace gala {
namespace {

/// Below every threshold where there is no trend.
double score_of(const LayerSums& sums, TrendScore kind) {
  const double update = sums.update_sq, trend = sums.shift_sq, along = sums.update_dot_shift;
  if (!(trend > 0)) return -std::numeric_limits<double>::infinity();
  if (!(update > 0)) return 0;
  switch (kind) {
    case TrendScore::kCosine:
      return cosine(sums);
    case TrendScore::kExcess:
      return cosine(sums) - std::sqrt(update / (update + trend));
    case TrendScore::kNoise:
      return std::sqrt(static_cast<double>(sums.count)) * along /
             (std::sqrt(update) * std::sqrt(trend));
  }
  fail("score {} does not exist", static_cast<int>(kind));
}

}  // namespace

TrendSelector::TrendSelector(const Options& options) : options_(options) {
  if (!(options.keep >= 0 && options.keep <= 1)) {
    fail<ConfigError>("selector trend: keep must lie in [0, 1], not {}", options.keep);
  }
  if (options.window < 0) {
    fail<ConfigError>("selector trend: window must be 0 (never) or more steps, not {}",
                      options.window);
  }
  if (options.mode == TrendMode::kWeights && !(options.threshold > 0)) {
    fail<ConfigError>(
        "selector trend: with mode=weights the threshold, at which a layer moves whole, must be "
        "above 0, not {}",
        options.threshold);
  }
}

std::vector<double> TrendSelector::select(const Proposal& proposal) {
  const double threshold = options_.threshold;
  std::vector<double> scores;
  for (const LayerSums& sums : proposal.sums) scores.push_back(score_of(sums, options_.score));
  std::vector<double> weights(scores.size(), 0.0);
  if (options_.mode == TrendMode::kSingle) {
    const auto best =
        static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    if (scores[best] > threshold) weights[best] = 1;
    return weights;
  }
  for (std::size_t l = 0; l < scores.size(); ++l) {
    weights[l] = options_.mode == TrendMode::kWeights ? std::clamp(scores[l] / threshold, 0.0, 1.0)
                 : scores[l] > threshold              ? 1
                                                      : 0;
  }
  return weights;
}

}  // namespace gala
