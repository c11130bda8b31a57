#include "gala/loss/deyo.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

DeyoRule::DeyoRule(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "sample rule deyo", options);
}

/// [N], 1 for images whose entropy is small enough.
at::Tensor DeyoRule::sure(const at::Tensor& entropy, const SampleInput& input) const {
  const auto classes = static_cast<double>(input.output.logits.size(1));
  const double margin = options_.margin * std::log(classes);
  return only_allowed(entropy.lt(margin).to(entropy.scalar_type()), input);
}

at::Tensor DeyoRule::wants(const SampleInput& input) const {
  const c10::NoGradGuard no_grad;
  return sure(entropies(input.output.logits.detach()), input);
}

at::Tensor DeyoRule::weigh(const SampleInput& input) {
  const c10::NoGradGuard no_grad;
  const at::Tensor logits = input.output.logits.detach();
  const double classes = std::log(static_cast<double>(logits.size(1)));
  const auto of_rows = [&](const at::Tensor& all) { return all.index_select(0, input.rows); };
  const at::Tensor p = of_rows(at::softmax(logits, 1));
  const at::Tensor shuffled = at::softmax(input.again->logits.detach(), 1);
  const at::Tensor label = p.argmax(1, /*keepdim=*/true);
  const at::Tensor fall = (p.gather(1, label) - shuffled.gather(1, label)).squeeze(1);
  const at::Tensor entropy = entropies(logits);
  const at::Tensor kept =
      fall.gt(options_.drop).to(logits.scalar_type()) * of_rows(sure(entropy, input)).ne(0);
  const at::Tensor weight =
      (options_.weight_margin * classes - of_rows(entropy)).exp() + fall.exp();
  const at::Tensor scale = static_cast<double>(logits.size(0)) / kept.sum().clamp_min(1);
  return at::zeros_like(entropy).index_copy(
      0, input.rows, at::where(kept.ne(0), weight * scale, at::zeros_like(weight)));
}

}  // namespace gala
