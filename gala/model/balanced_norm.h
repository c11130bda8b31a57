#pragma once
#include <ATen/core/Tensor.h>

namespace gala {

/// Mean and variance of a norm layer, [C]; or those of each class, [classes, C].
struct NormStatistics {
  at::Tensor mean, variance;
};

/// Balanced batch normalisation, TRIBE's (Su et al., "Towards Real-World Test-Time Adaptation: Tri-Net Self-Training
/// with Balanced Normalization", AAAI 2024): statistics of each class, which the images that seem to be of it
/// move, and of these the statistics that normalise, in which every class counts alike however often it comes.
///
/// Of n_k images of class k, with m_i and v_i the mean and variance of a channel within image i:
///   a_k = min(η, 1 / n_k)                              a class is never more than its images' own mean
///   δ_k = a_k Σ_i (m_i - μ_k),   q_k = a_k Σ_i (v_i + (m_i - μ_k)²)
///   μ_k ← μ_k + (1 - γ) δ_k + γ mean δ
///   σ²_k ← σ²_k + (1 - γ) (q_k - a_k n_k σ²_k - δ_k²)
///   σ²_k ← σ²_k + γ (mean (q - δ²) - σ²_k mean (a n))
///   μ = mean μ_k,   σ² = mean σ²_k + Σ_k (μ_k - μ)² / (classes - 1)
/// The first means are over the classes of this batch, the last over all of them. η is `momentum` and γ is `common`: at 0
/// a class moves alone, at 1 all move together. They begin as the source's.
///
/// This is the published code, with its 1 / (classes - 1) (a mixture's own variance has 1 / classes) and its gradients, which flow
/// through the share that the batch has in the statistics. Ours: an image whose values are not finite in this layer
/// counts in no class of it, and a sum that float32 cannot hold is not taken in. Products and sums are double.
///
/// `input` is [N, C, H, W], `labels` [N] (int64, on its device; -1: of no class). `classes` and `running` change in
/// place; what is returned is what they become, with gradients.
NormStatistics balanced_statistics(const at::Tensor& input, const at::Tensor& labels,
                                   NormStatistics& classes, NormStatistics& running,
                                   double momentum, double common);

}  // namespace gala
