#include "gala/loss/pseudo_label.h"

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

PseudoLabelLoss::PseudoLabelLoss(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "loss pseudo_label", options);
}

LossTerms PseudoLabelLoss::evaluate(const LossInput& input) const {
  return confident_cross_entropy(input.student.logits, options_.beta, input.weights);
}

}  // namespace gala
