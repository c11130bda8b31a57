#include "gala/loss/source_cross_entropy.h"

#include <ATen/ATen.h>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

SourceCrossEntropyLoss::SourceCrossEntropyLoss(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "loss source_cross_entropy", options);
}

LossTerms SourceCrossEntropyLoss::evaluate(const LossInput& input) const {
  const at::Tensor losses =
      compare_looks(input.source->logits, input, options_.look, Comparison::kCrossEntropy);
  return {weighted_mean(losses, input.weights) * options_.weight,
          count_of(input.student.logits, input.weights)};
}

}  // namespace gala
