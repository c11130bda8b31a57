#include "gala/method/cosine_penalty.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/method/ranges.h"

namespace gala {

CosinePenalty::CosinePenalty(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "penalty cosine", options);
}

void CosinePenalty::learn(Model&, const ParameterArena& parameters, const SourceImages&) {
  source_ = parameters.values().clone();
}

void CosinePenalty::add(const ParameterArena& parameters, Gradients& gradients) const {
  const c10::NoGradGuard no_grad;
  const double weight = options_.weight / static_cast<double>(gradients.tensors.size());
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
    const at::Tensor now = parameters.view(parameters.values(), i);
    const at::Tensor then = parameters.view(source_, i);
    const at::Tensor now_square = now.square().sum(), product = (now * then).sum();
    const at::Tensor lengths = (now_square * then.square().sum()).sqrt();
    // -∂cos/∂θ = (θ · cos / |θ|² - θ_source / (|θ| |θ_source|)).
    at::Tensor pull = (now * (product / now_square) - then) / lengths * weight;
    if (factor_.defined()) pull = pull * factor_;
    pull = at::where(lengths > 0, pull, at::zeros_like(pull));
    at::Tensor& gradient = gradients.tensors[i];
    gradient = gradient.defined() ? gradient.add_(pull) : pull;
  }
}

}  // namespace gala
