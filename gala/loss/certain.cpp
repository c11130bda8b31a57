#include "gala/loss/certain.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "gala/loss/ranges.h"
#include "gala/loss/terms.h"

namespace gala {

CertainRule::CertainRule(const Options& options) : options_(options) {
  check_ranges(loss_ranges(), "sample rule certain", options);
}

at::Tensor CertainRule::weigh(const SampleInput& input) {
  const c10::NoGradGuard no_grad;
  const at::Tensor logits = input.output.logits.detach();
  const double margin = options_.margin * std::log(static_cast<double>(logits.size(1)));
  const at::Tensor kept =
      only_allowed(entropies(logits).lt(margin).to(logits.scalar_type()), input);
  return kept * (static_cast<double>(logits.size(0)) / kept.sum().clamp_min(1));
}

}  // namespace gala
