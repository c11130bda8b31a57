#include "gala/method/palm_probe.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/tensor/torch_workspace.h"

namespace gala {

void PalmProbe::attach(const ParameterArena& parameters, const LayerPartition& layers) {
  by_layer_ = ByLayer(layers, parameters.entries().size(), parameters.values().device());
  steady_ = parameters.make_buffer();
  weights_ = at::zeros_like(by_layer_.counts());
}

at::Tensor PalmProbe::scalar(const Output& output) const {
  return -at::log_softmax(output.logits / options_.temperature, 1).sum(1).mean();
}

at::Tensor PalmProbe::look(const ParameterArena& parameters, const Gradients& gradients) {
  constexpr double kEpsilon = 1e-8;  // as in the published code
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> given, values, steady;
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
    values.push_back(parameters.view(parameters.values(), i));
    steady.push_back(parameters.view(steady_, i));
    given.push_back(gradients.tensors[i].defined() ? gradients.tensors[i]
                                                   : at::zeros_like(values.back()));
  }
  const at::Tensor size = by_layer_.sum(at::stack(at::_foreach_norm(given, 1)));
  const at::Tensor chosen = size.le(options_.threshold);
  const at::Tensor fresh = by_layer_.spread(chosen.to(at::kFloat) * (1 - options_.keep));
  const at::Tensor sound = by_layer_.spread(chosen);
  std::vector<at::Tensor> sensitivity = at::_foreach_mul(values, given);
  at::_foreach_abs_(sensitivity);
  // A layer that is not chosen keeps its mean: nothing of it is fresh. Its gradient need not be finite, and
  // nothing times infinity is no number.
  for (std::size_t i = 0; i < steady.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    steady[i].lerp_(at::where(sound[number], sensitivity[i], steady[i]), fresh[number]);
  }
  at::_foreach_sub_(sensitivity, steady);
  at::_foreach_abs_(sensitivity);
  at::_foreach_add_(sensitivity, kEpsilon);
  at::_foreach_div_(sensitivity, at::_foreach_add(steady, kEpsilon));
  const at::Tensor unsteady =
      by_layer_.sum(at::stack(at::_foreach_norm(sensitivity, 1))) / by_layer_.counts();
  weights_.copy_(at::where(chosen, unsteady, weights_));
  return weights_;
}

void PalmProbe::reset() {
  const c10::NoGradGuard no_grad;
  steady_.zero_();
  weights_.zero_();
}

void PalmProbe::remember(StateArchive& archive) {
  archive.buffer("palm/", hold(steady_));
  archive.tensor("palm_weights", weights_);
}

}  // namespace gala
