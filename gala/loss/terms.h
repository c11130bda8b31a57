#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "gala/loss/loss.h"

namespace gala {

// Terms over logits [N, C]. `weights` [N] say how much each sample counts; undefined: 1 each.

/// The mean of weight times loss over the batch.
at::Tensor weighted_mean(const at::Tensor& losses, const at::Tensor& weights);

/// How many samples take part: all, or those with a weight.
at::Tensor count_of(const at::Tensor& logits, const at::Tensor& weights);

/// -Σ_c p_c log p_c of each sample, [N].
at::Tensor entropies(const at::Tensor& logits);

/// Mean over samples of -Σ_c p_c log p_c.
at::Tensor mean_entropy(const at::Tensor& logits, const at::Tensor& weights = {});

/// Σ_c p̄_c log(p̄_c + epsilon) with p̄ the batch mean of the softmax: minus the diversity. With
/// weights p̄ is the weighted mean, and zeros where all weights are zero.
at::Tensor negative_diversity(const at::Tensor& logits, double epsilon,
                              const at::Tensor& weights = {});

/// Mean cross-entropy against the arg-max labels over the samples whose largest probability exceeds
/// `beta`; weights count in the sum and not in the number of samples. No gradient flows through labels or mask. With no such sample the value is 0 and so is the
/// gradient.
LossTerms confident_cross_entropy(const at::Tensor& logits, double beta,
                                  const at::Tensor& weights = {});

}  // namespace gala
