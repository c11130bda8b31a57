#include "gala/loss/diverse_certain.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {
namespace {

/// To [0, 1]; all alike become zeros, where the published code has 0 / 0.
at::Tensor stretched(const at::Tensor& values) {
  constexpr double kTiny = 1e-30;
  const at::Tensor least = values.min();
  return (values - least) / (values.max() - least).clamp_min(kTiny);
}

}  // namespace

DiverseCertainRule::DiverseCertainRule(const Options& options)
    : options_(options), seen_(options.keep, /*even=*/true) {
  check_ranges(loss_ranges(), "sample rule diverse_certain", options);
}

at::Tensor DiverseCertainRule::weigh(const SampleInput& input) {
  const c10::NoGradGuard no_grad;
  const at::Tensor logits = input.output.logits.detach(), p = at::softmax(logits, 1);
  seen_.prepare(p);
  const at::Tensor diversity = stretched(1 - seen_.cosine(p));
  const at::Tensor certainty = stretched(-entropies(logits));
  const at::Tensor weights = (diversity * certainty * options_.sharpness).exp();
  seen_.take(p, at::ones_like(diversity));
  return only_allowed(at::where(diversity.lt(diversity.mean()), at::zeros_like(weights), weights),
                      input);
}

}  // namespace gala
