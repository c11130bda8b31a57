#include "gala/loss/entropy.h"

#include <ATen/ATen.h>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

EntropyLoss::EntropyLoss(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "loss entropy", options);
}

LossTerms EntropyLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.student.logits;
  if (options_.below == 0) {
    return {mean_entropy(logits, input.weights), count_of(logits, input.weights)};
  }
  const at::Tensor entropy = entropies(logits);
  const at::Tensor kept = entropy.detach().lt(options_.below).to(logits.scalar_type());
  const at::Tensor count = kept.sum();
  const at::Tensor counted = input.weights.defined() ? kept * input.weights : kept;
  return {(entropy * counted).sum() / count.clamp_min(1), count};
}

}  // namespace gala
