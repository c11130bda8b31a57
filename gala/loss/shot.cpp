#include "gala/loss/shot.h"

#include <ATen/ATen.h>

#include "gala/loss/terms.h"

namespace gala {

ShotLoss::ShotLoss(const Options& options) : options_(options) {
  check_confidence("shot", options.beta);
  if (!(options.theta >= 0)) {
    fail<ConfigError>("loss shot: theta must not be negative, not {}", options.theta);
  }
}

LossTerms ShotLoss::evaluate(const Output& output) const {
  const LossTerms labels = confident_cross_entropy(output.logits, options_.beta);
  return {mean_entropy(output.logits) + negative_diversity(output.logits, 1e-5) +
              options_.theta * labels.value,
          labels.confident};
}

}  // namespace gala
