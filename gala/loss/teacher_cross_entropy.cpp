#include "gala/loss/teacher_cross_entropy.h"

#include <ATen/ATen.h>

#include "gala/loss/terms.h"

namespace gala {

LossTerms TeacherCrossEntropyLoss::evaluate(const LossInput& input) const {
  const at::Tensor& logits = input.student.logits;
  const at::Tensor losses = compare(input.teacher->logits, logits, options_.form);
  return {weighted_mean(losses, input.weights), count_of(logits, input.weights)};
}

}  // namespace gala
