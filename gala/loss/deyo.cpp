#include "gala/loss/deyo.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "gala/base/error.h"
#include "gala/loss/terms.h"

namespace gala {

DeyoRule::DeyoRule(const Options& options) : options_(options) {
  if (!(options.margin > 0)) {
    fail<ConfigError>("sample rule deyo: margin must be above 0, not {}", options.margin);
  }
  if (!(options.drop >= -1 && options.drop < 1)) {
    fail<ConfigError>("sample rule deyo: drop must lie in [-1, 1), not {}", options.drop);
  }
}

at::Tensor DeyoRule::weigh(const SampleInput& input) {
  const c10::NoGradGuard no_grad;
  const at::Tensor logits = input.output.logits.detach();
  const double classes = std::log(static_cast<double>(logits.size(1)));
  const at::Tensor entropy = entropies(logits);
  const at::Tensor sure =
      only_allowed(entropy.lt(options_.margin * classes).to(logits.scalar_type()), input);
  const at::Tensor rows = sure.nonzero().squeeze(1);
  at::Tensor weights = at::zeros_like(entropy);
  if (rows.size(0) == 0) return weights;
  const at::Tensor p = at::softmax(logits, 1).index_select(0, rows);
  const at::Tensor shuffled = at::softmax(input.look_again(rows).logits.detach(), 1);
  const at::Tensor label = p.argmax(1, /*keepdim=*/true);
  const at::Tensor fall = (p.gather(1, label) - shuffled.gather(1, label)).squeeze(1);
  const at::Tensor kept = fall.gt(options_.drop).to(logits.scalar_type());
  const at::Tensor weight =
      (options_.weight_margin * classes - entropy.index_select(0, rows)).exp() + fall.exp();
  const at::Tensor scale = static_cast<double>(logits.size(0)) / kept.sum().clamp_min(1);
  return weights.index_copy(0, rows, at::where(kept.ne(0), weight * scale, at::zeros_like(weight)));
}

}  // namespace gala
