#pragma once
#include <ATen/core/Tensor.h>

#include "gala/step/health.h"

namespace gala {

/// The class of the largest logit of each image, int64 [N]; kNoClass where a logit is not finite.
at::Tensor predicted_classes(const at::Tensor& logits);

/// Which answers are right, bool [N]; never one whose logits are not finite.
at::Tensor right_answers(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace gala
