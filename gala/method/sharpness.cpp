#include "gala/method/sharpness.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <vector>

#include "gala/method/ranges.h"

namespace gala {

SharpnessPerturbation::SharpnessPerturbation(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "perturbation sam", options);
}

void SharpnessPerturbation::leave(const ParameterArena& parameters, const Gradients& gradients) {
  constexpr double kTiny = 1e-12;  // as in the published code
  const c10::NoGradGuard no_grad;
  if (!before_.defined()) before_ = parameters.make_buffer();
  before_.copy_(parameters.values());
  std::vector<at::Tensor> known;
  for (const at::Tensor& gradient : gradients.tensors) {
    if (gradient.defined()) known.push_back(gradient);
  }
  if (known.empty()) return;
  const at::Tensor norm = at::stack(at::_foreach_norm(known, 2)).norm();
  const at::Tensor scale = options_.rho / (norm + kTiny);
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
    const at::Tensor& gradient = gradients.tensors[i];
    if (gradient.defined()) parameters.view(parameters.values(), i).addcmul_(gradient, scale);
  }
}

void SharpnessPerturbation::come_back(const ParameterArena& parameters) {
  const c10::NoGradGuard no_grad;
  parameters.values().copy_(before_);
}

}  // namespace gala
