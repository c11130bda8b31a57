#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gala {

/// Stands in the place of a class where an answer is not finite. It is never right: a label of -1
/// means that nobody knows the class.
inline constexpr std::int64_t kNoClass = -1;

/// The class of the largest logit of each image, int64 [N]; kNoClass where a logit is not finite.
at::Tensor predicted_classes(const at::Tensor& logits);

/// The same on the host.
std::vector<std::int64_t> predictions_of(const at::Tensor& logits);

}  // namespace gala
