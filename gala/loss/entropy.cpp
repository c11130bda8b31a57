#include "gala/loss/entropy.h"

#include <ATen/ATen.h>

#include "gala/loss/terms.h"

namespace gala {

LossTerms EntropyLoss::evaluate(const Output& output) const {
  return {mean_entropy(output.logits),
          at::full({}, output.logits.size(0), output.logits.options().requires_grad(false))};
}

}  // namespace gala
