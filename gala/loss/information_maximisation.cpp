#include "gala/loss/information_maximisation.h"

#include <ATen/ATen.h>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

InformationMaximisationLoss::InformationMaximisationLoss(const Options& options)
    : options_(options) {
  check_ranges(loss_ranges(), "loss information_maximisation", options);
}

LossTerms InformationMaximisationLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.student.logits;
  return {mean_entropy(logits, input.weights) +
              negative_diversity(logits, options_.epsilon, input.weights),
          count_of(logits, input.weights)};
}

}  // namespace gala
