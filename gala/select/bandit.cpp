#include "gala/select/bandit.h"

#include <algorithm>

#include "gala/base/error.h"

namespace gala {

BanditSelector::BanditSelector(const Options& options, std::uint64_t seed)
    : options_(options), draws_(seed, "bandit") {
  const auto check = [](double share, std::string_view name) {
    if (!(share >= 0 && share <= 1)) {
      fail<ConfigError>("selector bandit: {} must lie in [0, 1], not {}", name, share);
    }
  };
  check(options.explore, "explore");
  check(options.keep, "keep");
}

void BanditSelector::attach(const LayerPartition& layers) {
  values_.assign(layers.size(), 0.0);
  reset();
}

void BanditSelector::reset() {
  draws_.begin();
  restart();
}

/// Draws go on.
void BanditSelector::restart() {
  std::fill(values_.begin(), values_.end(), 0.0);
  chosen_ = -1;
  loss_ = 0;
}

std::vector<double> BanditSelector::select(const Proposal& proposal) {
  if (chosen_ >= 0) {
    double& value = values_[static_cast<std::size_t>(chosen_)];
    value = options_.keep * value + (1 - options_.keep) * (loss_ - proposal.loss);
  }
  const auto best = std::max_element(values_.begin(), values_.end()) - values_.begin();
  const bool tries = draws_.uniform() < options_.explore;
  chosen_ = tries ? static_cast<std::int64_t>(draws_.below(values_.size())) : best;
  loss_ = proposal.loss;
  std::vector<double> weights(values_.size(), 0.0);
  weights[static_cast<std::size_t>(chosen_)] = 1;
  return weights;
}

void BanditSelector::remember(Archive& archive) {
  const std::size_t layers = values_.size();
  draws_.remember(archive);
  archive.value("selector_bandit_values", values_);
  archive.value("selector_bandit_chosen", chosen_);
  archive.value("selector_bandit_loss", loss_);
  if (values_.size() != layers || chosen_ < -1 || chosen_ >= static_cast<std::int64_t>(layers)) {
    fail("the selector's values are of another number of layers");
  }
}

}  // namespace gala
