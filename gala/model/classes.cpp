#include "gala/model/classes.h"

#include <ATen/ATen.h>

namespace gala {

at::Tensor predicted_classes(const at::Tensor& logits) {
  // argmax alone would take what is not a number for the largest.
  return logits.argmax(1).masked_fill_(at::isfinite(logits).all(1).logical_not_(), kNoClass);
}

at::Tensor right_answers(const at::Tensor& logits, const at::Tensor& labels) {
  return logits.argmax(1).eq(labels).logical_and_(at::isfinite(logits).all(1));
}

}  // namespace gala
