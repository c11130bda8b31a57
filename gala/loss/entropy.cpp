#include "gala/loss/entropy.h"

#include <ATen/ATen.h>

#include "gala/loss/terms.h"

namespace gala {

LossTerms EntropyLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.student.logits;
  return {mean_entropy(logits, input.weights), count_of(logits, input.weights)};
}

}  // namespace gala
