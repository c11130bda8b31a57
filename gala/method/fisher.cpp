#include "gala/method/fisher.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "gala/base/error.h"
#include "gala/method/ranges.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {

DistancePenalty::DistancePenalty(const Options& options) : DistancePenalty(options.weight) {
  check_ranges(method_ranges(), "penalty distance", options);
}

void DistancePenalty::learn(Model&, const ParameterArena& parameters, const SourceImages&) {
  source_ = parameters.values().clone();
}

void DistancePenalty::add(const ParameterArena& parameters, Gradients& gradients) const {
  const c10::NoGradGuard no_grad;
  at::Tensor pull = (parameters.values() - source_).mul_(2 * weight_);
  if (importance_.defined()) pull.mul_(importance_);
  if (factor_.defined()) pull.mul_(factor_);
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
    at::Tensor& gradient = gradients.tensors[i];
    const at::Tensor part = parameters.view(pull, i);
    gradient = gradient.defined() ? gradient.add_(part) : part.clone();
  }
}

FisherPenalty::FisherPenalty(const Options& options)
    : DistancePenalty(options.weight), options_(options) {
  check_ranges(method_ranges(), "penalty fisher", options);
}

void FisherPenalty::learn(Model& model, const ParameterArena& parameters,
                          const SourceImages& images) {
  DistancePenalty::learn(model, parameters, images);
  importance_ = parameters.make_buffer();
  std::int64_t seen = 0, batches = 0;
  for (at::Tensor batch = images(); batch.defined(); batch = images()) {
    if (options_.images > 0 && seen >= options_.images) break;
    if (options_.images > 0 && seen + batch.size(0) > options_.images) {
      batch = batch.narrow(0, 0, options_.images - seen);
    }
    seen += batch.size(0);
    ++batches;
    {
      const c10::AutoGradMode with_gradients(true);
      const at::Tensor log_p = at::log_softmax(
          model.forward(batch.to(model.device()), /*update_statistics=*/false).logits, 1);
      const at::Tensor label = log_p.detach().argmax(1, /*keepdim=*/true);
      (-log_p.gather(1, label).mean()).backward();
    }
    const Gradients gradients = Gradients::take(parameters);
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
      const at::Tensor& gradient = gradients.tensors[i];
      if (gradient.defined()) parameters.view(importance_, i).addcmul_(gradient, gradient);
    }
  }
  if (batches == 0) fail<ConfigError>("penalty fisher: there are no images of the source");
  const c10::NoGradGuard no_grad;
  importance_.div_(static_cast<double>(batches));
}

void FisherPenalty::remember(StateArchive& archive) {
  if (!importance_.defined()) return;  // where nothing moves, nothing was learned
  // So that a run goes on by what it learned, whatever became of the images.
  archive.buffer("fisher/", hold(importance_));
}

}  // namespace gala
