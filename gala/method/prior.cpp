#include "gala/method/prior.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gala {

at::Tensor PriorReadout::correct(const Output& output) {
  const at::Tensor& logits = output.logits;
  const auto images = static_cast<double>(logits.size(0));
  const auto classes = static_cast<double>(logits.size(1));
  const at::Tensor finite = at::isfinite(logits).all(1, /*keepdim=*/true);
  const at::Tensor p = at::where(finite, at::softmax(logits, 1), at::zeros({}, logits.options()));
  const at::Tensor prior = p.sum(0) / finite.sum().clamp_min(1);
  // Where no answer is finite there is no prior, and nothing to correct.
  const at::Tensor smooth = std::max(1 / images, 1 / classes) / prior.max().clamp_min(1e-12);
  return logits * ((prior + smooth) / (1 + smooth * classes));
}

}  // namespace gala
