#include "gala/method/law_probe.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/tensor/torch_workspace.h"

namespace gala {

void LawProbe::attach(const ParameterArena& parameters, const LayerPartition& layers) {
  by_layer_ = ByLayer(layers, parameters.entries().size(), parameters.values().device());
  information_ = at::zeros_like(by_layer_.counts());
  if (options_.carried) carried_ = parameters.make_buffer();
}

at::Tensor LawProbe::scalar(const Output& output) const {
  const at::Tensor log_p = at::log_softmax(output.logits, 1);
  return -log_p.gather(1, log_p.detach().argmax(1, /*keepdim=*/true)).mean();
}

at::Tensor LawProbe::look(const ParameterArena& parameters, const Gradients& gradients) {
  constexpr double kEpsilon = 1e-8;  // as in the published code
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> given;
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
    const at::Tensor& own = gradients.tensors[i];
    const at::Tensor before = options_.carried ? parameters.view(carried_, i) : at::Tensor();
    if (own.defined() && before.defined()) {
      given.push_back(own + before);
    } else if (own.defined() || before.defined()) {
      given.push_back(own.defined() ? own : before);
    } else {
      given.push_back(at::zeros_like(parameters.view(parameters.values(), i)));
    }
  }
  const at::Tensor norms = at::stack(at::_foreach_norm(given, 2)).to(at::kDouble);
  const at::Tensor sum = information_ + by_layer_.sum(norms * norms) / by_layer_.counts();
  information_.copy_(at::where(at::isfinite(sum).all(), sum, information_));
  const at::Tensor root = information_.sqrt(), least = root.min();
  return ((root - least) / (root.max() - least + kEpsilon)).pow(options_.power);
}

void LawProbe::see(const ParameterArena& parameters, const Gradients& gradients) {
  if (!options_.carried) return;
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
    at::Tensor place = parameters.view(carried_, i);
    if (gradients.tensors[i].defined()) {
      place.copy_(gradients.tensors[i]);
    } else {
      place.zero_();
    }
  }
}

void LawProbe::reset() {
  const c10::NoGradGuard no_grad;
  information_.zero_();
  if (options_.carried) carried_.zero_();
}

void LawProbe::remember(StateArchive& archive) {
  archive.tensor("law_information", information_);
  if (options_.carried) archive.buffer("law_carried/", hold(carried_));
}

}  // namespace gala
