#pragma once
#include "gala/model/norm.h"

namespace gala {

/// Batch normalisation with fixed statistics on a GPU, and what follows it, for channels-last maps in
/// float32 or bfloat16; differentiable in input, scale, shift and what is added. One pass forward and
/// one backward, where LibTorch's own takes four for the norm alone. Undefined for everything else, and
/// where this library was built without CUDA.
at::Tensor cuda_norm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                     const at::Tensor& mean, const at::Tensor& variance, double epsilon,
                     const NormEnd& end = {});

/// The same with the statistics of the maps themselves, through which gradients flow: two passes forward, two
/// backward. `counted`, where defined, is a number on the GPU (int64, no dimensions): the statistics are those of
/// the first so many images, and the others must come with gradients of zero.
at::Tensor cuda_batch_norm(const at::Tensor& input, const at::Tensor& scale,
                           const at::Tensor& shift, double epsilon, const NormEnd& end = {},
                           const at::Tensor& counted = {});

/// Norm mode `adaptive`, see gala/model/norm.h: three passes forward, two backward. The running statistics move where
/// `update_statistics` is true.
at::Tensor cuda_adaptive_norm(const at::Tensor& input, const at::Tensor& scale,
                              const at::Tensor& shift, const at::Tensor& running_mean,
                              const at::Tensor& running_var, const NormMode& mode, double epsilon,
                              bool update_statistics, const NormEnd& end, const at::Tensor& counted,
                              const NormSource& source);

}  // namespace gala
