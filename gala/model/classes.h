#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gala {

/// Stands in the place of a class where an answer is not finite. It is never right: a label of -1
/// means that nobody knows the class.
inline constexpr std::int64_t kNoClass = -1;

/// The class of the largest logit of each image, int64 [N]; kNoClass where a logit is not finite.
at::Tensor predicted_classes(const at::Tensor& logits);

/// Which answers are right, bool [N]; never one whose logits are not finite.
at::Tensor right_answers(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace gala
