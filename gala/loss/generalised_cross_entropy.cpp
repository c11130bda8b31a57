#include "gala/loss/generalised_cross_entropy.h"

#include <ATen/ATen.h>

#include "gala/base/error.h"
#include "gala/loss/terms.h"

namespace gala {

GeneralisedCrossEntropyLoss::GeneralisedCrossEntropyLoss(const Options& options)
    : options_(options) {
  if (!(options.q > 0 && options.q <= 1)) {
    fail<ConfigError>("loss generalised_cross_entropy: q must lie in (0, 1], not {}", options.q);
  }
}

LossTerms GeneralisedCrossEntropyLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.student.logits;
  const at::Tensor label = logits.detach().argmax(1, /*keepdim=*/true);
  const at::Tensor p = at::softmax(logits, 1).gather(1, label).squeeze(1);
  return {weighted_mean((1 - p.pow(options_.q)) / options_.q, input.weights),
          count_of(logits, input.weights)};
}

}  // namespace gala
