#include "gala/loss/terms.h"

#include <ATen/ATen.h>

#include "gala/base/error.h"

namespace gala {

at::Tensor weighted_mean(const at::Tensor& losses, const at::Tensor& weights) {
  return (weights.defined() ? losses * weights : losses).mean();
}

at::Tensor count_of(const at::Tensor& logits, const at::Tensor& weights) {
  if (weights.defined()) return weights.ne(0).sum().to(logits.scalar_type());
  return at::full({}, logits.size(0), logits.options().requires_grad(false));
}

at::Tensor entropies(const at::Tensor& logits) {
  const at::Tensor log_p = at::log_softmax(logits, 1);
  return -(log_p.exp() * log_p).sum(1);
}

at::Tensor mean_entropy(const at::Tensor& logits, const at::Tensor& weights) {
  return weighted_mean(entropies(logits), weights);
}

at::Tensor negative_diversity(const at::Tensor& logits, double epsilon, const at::Tensor& weights) {
  constexpr double kTiny = 1e-12;  // where all weights are zero
  const at::Tensor p = at::softmax(logits, 1);
  const at::Tensor mean_p = weights.defined()
                                ? (p * weights.unsqueeze(1)).sum(0) / weights.sum().clamp_min(kTiny)
                                : p.mean(0);
  return (mean_p * (mean_p + epsilon).log()).sum();
}

LossTerms confident_cross_entropy(const at::Tensor& logits, double beta,
                                  const at::Tensor& weights) {
  const at::Tensor log_p = at::log_softmax(logits, 1);
  const auto [best, label] = log_p.max(1, /*keepdim=*/true);
  const at::Tensor kept = (best.detach().exp() > beta).to(logits.scalar_type());
  const at::Tensor count = kept.sum();
  const at::Tensor counted = weights.defined() ? kept * weights.unsqueeze(1) : kept;
  const at::Tensor value = -(log_p.gather(1, label) * counted).sum() / count.clamp_min(1);
  return {value, count.detach()};
}

}  // namespace gala
