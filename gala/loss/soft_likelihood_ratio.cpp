#include "gala/loss/soft_likelihood_ratio.h"

#include <ATen/ATen.h>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

SoftLikelihoodRatioLoss::SoftLikelihoodRatioLoss(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "loss soft_likelihood_ratio", options);
}

LossTerms SoftLikelihoodRatioLoss::evaluate(const LossInput& input) const {
  constexpr double kEpsilon = 1e-5;  // as in the published code
  const at::Tensor& logits = input.student.logits;
  const at::Tensor p = at::softmax(logits, 1).clamp(0, options_.clip);
  const at::Tensor losses = -(p * (p / (1 - p) + kEpsilon).log()).sum(1);
  return {weighted_mean(losses, input.weights), count_of(logits, input.weights)};
}

}  // namespace gala
