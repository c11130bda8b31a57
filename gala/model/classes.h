#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "gala/step/health.h"

namespace gala {

/// The class of the largest logit of each image, int64 [N]; kNoClass where a logit is not finite.
at::Tensor predicted_classes(const at::Tensor& logits);

/// The same on the host.
std::vector<std::int64_t> predictions_of(const at::Tensor& logits);

}  // namespace gala
