#include "gala/select/probed.h"

#include <algorithm>

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
  double pace = options_.step / proposal.learning_rate;
  if (proposal.images > 0 && proposal.images < options_.images) {
    pace *= proposal.images / options_.images;
  }
  for (double& weight : weights) {
    if (options_.most > 0) weight = std::min(weight, options_.most);
    weight *= pace;
  }
  return weights;
}

LawSelector::LawSelector(const Options& options) : options_(options) {
  if (!(options.power >= 0)) {
    fail<ConfigError>("selector law: power must not be negative, not {}", options.power);
  }
}

}  // namespace gala
