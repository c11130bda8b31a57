#include "gala/select/gala.h"

#include <algorithm>

#include "gala/base/error.h"

namespace gala {
namespace {

/// The layer of the largest cosine; among ties the one with the larger update, then the first.
std::size_t best_layer(std::span<const double> cosines, std::span<const LayerSums> sums,
                       double tie) {
  const double largest = *std::max_element(cosines.begin(), cosines.end());
  std::size_t best = cosines.size();
  for (std::size_t l = 0; l < cosines.size(); ++l) {
    if (cosines[l] < largest - tie) continue;
    if (best == cosines.size() || sums[l].update_sq > sums[best].update_sq) best = l;
  }
  return best;
}

}  // namespace

GalaSelector::GalaSelector(const Options& options) : options_(options) {
  const auto require = [](bool holds, std::string_view rule, auto given) {
    if (!holds) fail<ConfigError>("selector gala: {}, not {}", rule, given);
  };
  require(options.threshold >= -1 && options.threshold <= 1, "threshold must lie in [-1, 1]",
          options.threshold);
  require(options.window >= 0, "window must be 0 (never) or more steps", options.window);
  require(options.opening_scale >= 0 && options.opening_scale <= 1,
          "opening_scale must lie in [0, 1]", options.opening_scale);
  require(options.opening_rate >= 0, "opening_rate must not be negative", options.opening_rate);
  require(options.opening_steps >= 0, "opening_steps must not be negative", options.opening_steps);
  require(options.tie >= 0 && options.tie <= 2, "tie must lie in [0, 2]", options.tie);
}

Window GalaSelector::window() const {
  return {options_.window, options_.anchor, options_.displacement,
          options_.optimizer == MomentsAtReset::kReset};
}

double GalaSelector::opening_weight(const Proposal& proposal) const {
  double scale = options_.opening_scale;
  if (options_.opening_rate > 0)
    scale = std::min(1.0, options_.opening_rate / proposal.learning_rate);
  if (!options_.opening_ramp) return scale;
  return scale * static_cast<double>(proposal.clock.window_step) /
         static_cast<double>(options_.opening_steps + 1);
}

std::vector<double> GalaSelector::select(const Proposal& proposal) {
  std::vector<double> weights(proposal.sums.size(), 0.0);
  const bool opening = proposal.clock.window_step <= options_.opening_steps;
  if (opening && options_.opening == GalaOpening::kAll) {
    std::fill(weights.begin(), weights.end(), opening_weight(proposal));
    return weights;
  }
  std::vector<double> cosines;
  for (const LayerSums& sums : proposal.sums) cosines.push_back(cosine(sums));
  const auto passes = [&](std::size_t l) { return cosines[l] > options_.threshold; };
  if (options_.mode == GalaMode::kMultiple && !opening) {
    for (std::size_t l = 0; l < weights.size(); ++l) weights[l] = passes(l) ? 1 : 0;
    return weights;
  }
  const std::size_t best = best_layer(cosines, proposal.sums, options_.tie);
  if (opening || passes(best)) weights[best] = 1;
  return weights;
}

}  // namespace gala
