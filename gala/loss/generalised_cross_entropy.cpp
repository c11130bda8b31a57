#include "gala/loss/generalised_cross_entropy.h"

#include <ATen/ATen.h>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

GeneralisedCrossEntropyLoss::GeneralisedCrossEntropyLoss(const Options& options)
    : options_(options) {
  check_ranges(loss_ranges(), "loss generalised_cross_entropy", options);
}

LossTerms GeneralisedCrossEntropyLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.student.logits;
  const at::Tensor label = logits.detach().argmax(1, /*keepdim=*/true);
  const at::Tensor p = at::softmax(logits, 1).gather(1, label).squeeze(1);
  return {weighted_mean((1 - p.pow(options_.q)) / options_.q, input.weights),
          count_of(logits, input.weights)};
}

}  // namespace gala
