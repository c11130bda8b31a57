#pragma once
#include <ATen/core/Tensor.h>

namespace gala {

/// Batch normalisation with fixed statistics on a GPU, for channels-last maps in float32 or bfloat16;
/// differentiable in input, scale and shift. One pass forward and one backward, where LibTorch's own
/// takes four. Undefined for everything else, and where this library was built without CUDA.
at::Tensor cuda_norm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                     const at::Tensor& mean, const at::Tensor& variance, double epsilon);

}  // namespace gala
