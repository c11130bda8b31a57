#include "gala/loss/shot.h"

#include <ATen/ATen.h>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

ShotLoss::ShotLoss(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "loss shot", options);
}

LossTerms ShotLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.student.logits;
  const LossTerms labels = confident_cross_entropy(logits, options_.beta, input.weights);
  return {mean_entropy(logits, input.weights) + negative_diversity(logits, 1e-5, input.weights) +
              options_.theta * labels.value,
          labels.confident};
}

}  // namespace gala
