#include "gala/loss/teacher_cross_entropy.h"

#include <ATen/ATen.h>

#include "gala/loss/terms.h"

namespace gala {

LossNeeds needs_of(LookAt look) {
  return {.images = look != LookAt::kView,
          .view = look == LookAt::kImages ? SecondLook::kNone : SecondLook::kAll};
}

at::Tensor compare_looks(const at::Tensor& answers, const LossInput& input, LookAt look,
                         Comparison form) {
  if (look == LookAt::kImages) return compare(answers, input.student.logits, form);
  const at::Tensor seen = compare(answers, input.view->logits, form);
  return look == LookAt::kView ? seen
                               : 0.5 * compare(answers, input.student.logits, form) + 0.5 * seen;
}

LossTerms TeacherCrossEntropyLoss::evaluate(const LossInput& input) const {
  const at::Tensor losses =
      compare_looks(input.teacher->logits, input, options_.look, options_.form);
  return {weighted_mean(losses, input.weights), count_of(input.student.logits, input.weights)};
}

}  // namespace gala
