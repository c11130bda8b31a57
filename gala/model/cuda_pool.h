#pragma once
#include <ATen/core/Tensor.h>

namespace gala {

/// The greatest of windows of 3 x 3, two apart, with a border of one: the pooling of a ResNet's stem, on a
/// GPU, for channels-last maps in float32 or bfloat16; differentiable. Undefined for everything else, and
/// where this library was built without CUDA.
at::Tensor cuda_pool(const at::Tensor& input);

}  // namespace gala
