#include "gala/model/classes.h"

#include <ATen/ATen.h>

namespace gala {

at::Tensor predicted_classes(const at::Tensor& logits) {
  // argmax alone would take what is not a number for the largest.
  return logits.argmax(1).masked_fill_(at::isfinite(logits).all(1).logical_not_(), kNoClass);
}

std::vector<std::int64_t> predictions_of(const at::Tensor& logits) {
  const at::Tensor classes = predicted_classes(logits).to(at::kCPU).contiguous();
  const auto* first = classes.const_data_ptr<std::int64_t>();
  return {first, first + classes.numel()};
}

}  // namespace gala
