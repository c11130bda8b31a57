#pragma once
#include <ATen/core/Tensor.h>

namespace gala {

class ProcessGroup;

/// Batch normalisation of [N, C, H, W] in training, where each process holds an equal part of the batch: with the
/// mean and variance of all N · size images, to which the running statistics move as in `batch_norm`. With m and
/// s² those of the batch, x̂ = (x - m) / √(s² + ε) and n values of a channel in the whole batch, the way back is
///   ∂x = scale / √(s² + ε) · (∂y - Σ∂y / n - x̂ · Σ(∂y · x̂) / n),
/// the sums over all processes. The gradients of scale and shift are this process's share of them.
///
/// A process tells the others a mean and a variance for each channel, and two sums on the way back.
at::Tensor shared_batch_norm(const at::Tensor& input, const at::Tensor& scale,
                             const at::Tensor& shift, at::Tensor& running_mean,
                             at::Tensor& running_var, double momentum, double epsilon,
                             bool update_statistics, ProcessGroup& processes);

}  // namespace gala
