#include "gala/loss/eta.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

EtaRule::EtaRule(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "sample rule eta", options);
}

at::Tensor EtaRule::weigh(const SampleInput& input) {
  const c10::NoGradGuard no_grad;
  const at::Tensor logits = input.output.logits.detach(), p = at::softmax(logits, 1);
  seen_.prepare(p);
  const double margin = options_.margin * std::log(static_cast<double>(logits.size(1)));
  const at::Tensor entropy = entropies(logits);
  const at::Tensor kept =
      only_allowed(entropy.lt(margin)
                       .logical_and(seen_.cosine(p).abs().lt(options_.redundancy))
                       .to(p.scalar_type()),
                   input);
  seen_.take(p, kept);
  const at::Tensor scale = static_cast<double>(logits.size(0)) / kept.sum().clamp_min(1);
  return at::where(kept.ne(0), (margin - entropy).exp() * scale, at::zeros_like(entropy));
}

}  // namespace gala
