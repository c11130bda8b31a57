#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "gala/loss/loss.h"

namespace gala {

/// Mean over samples of -Σ_c p_c log p_c. logits [N, C].
at::Tensor mean_entropy(const at::Tensor& logits);

/// Σ_c p̄_c log(p̄_c + epsilon) with p̄ the batch mean of the softmax: minus the diversity.
at::Tensor negative_diversity(const at::Tensor& logits, double epsilon);

/// Mean cross-entropy against the arg-max labels over the samples whose largest probability exceeds
/// `beta`. No gradient flows through labels or mask. With no such sample the value is 0 and so is the
/// gradient.
LossTerms confident_cross_entropy(const at::Tensor& logits, double beta);

/// Throws ConfigError unless beta is in [0, 1].
void check_confidence(std::string_view loss, double beta);

}  // namespace gala
