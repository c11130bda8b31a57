#include "gala/select/probed.h"

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"

namespace gala {

PalmSelector::PalmSelector(const Options& options) : options_(options) {
  if (!(options.temperature > 0)) {
    fail<ConfigError>("selector palm: temperature must be above 0, not {}", options.temperature);
  }
  if (!(options.threshold >= 0)) {
    fail<ConfigError>("selector palm: threshold must not be negative, not {}", options.threshold);
  }
  if (!(options.keep >= 0 && options.keep <= 1)) {
    fail<ConfigError>("selector palm: keep must lie in [0, 1], not {}", options.keep);
  }
}

PacedSelector::PacedSelector(const Options& options) : options_(options) {
  PalmSelector({options.threshold, options.temperature, options.keep});  // checks its own
  if (!(options.step > 0)) {
    fail<ConfigError>("selector paced: step must be above 0, not {}", options.step);
  }
  if (!(options.share >= 0)) {
    fail<ConfigError>("selector paced: share must not be negative, not {}", options.share);
  }
  if (!(options.images >= 0)) {
    fail<ConfigError>("selector paced: images must not be negative, not {}", options.images);
  }
  if (!(options.most >= 0)) {
    fail<ConfigError>("selector paced: most must not be negative, not {}", options.most);
  }
}

Spec PacedSelector::probe() const {
  return options_to_spec(
      "palm", PalmSelector::Options{options_.threshold, options_.temperature, options_.keep});
}

std::vector<double> PacedSelector::select(const Proposal& proposal) {
  std::vector<double> weights = ProbedSelector::select(proposal);
  double pace = 1 / proposal.learning_rate;
  if (proposal.images > 0 && proposal.images < options_.images) {
    pace *= proposal.images / options_.images;
  }
  if (options_.calm) pace *= proposal.moved;
  for (std::size_t l = 0; l < weights.size(); ++l) {
    if (options_.most > 0) weights[l] = std::min(weights[l], options_.most);
    weights[l] *= pace * step_of(proposal, l);
  }
  return weights;
}

double PacedSelector::step_of(const Proposal& proposal, std::size_t layer) const {
  const auto is_kernel = [&](std::size_t t) { return proposal.layout.entries[t].sizes.size() > 1; };
  const std::vector<std::size_t>& tensors = proposal.layers[layer].tensors;
  if (options_.share == 0 || !std::any_of(tensors.begin(), tensors.end(), is_kernel)) {
    return options_.step;
  }
  const LayerSums& sums = proposal.sums[layer];
  return options_.share * std::sqrt(sums.value_sq / static_cast<double>(sums.count));
}

LawSelector::LawSelector(const Options& options) : options_(options) {
  if (!(options.power >= 0)) {
    fail<ConfigError>("selector law: power must not be negative, not {}", options.power);
  }
}

}  // namespace gala
