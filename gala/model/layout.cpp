#include "gala/model/layout.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "gala/base/stopwatch.h"
#include "gala/device/capture_gate.h"

namespace gala {
namespace {

/// The quickest of a few passes forward and backward, in milliseconds.
double time_pass(Model& model, const at::Tensor& images) {
  const c10::AutoGradMode with_gradients(true);
  std::vector<at::Tensor> values;
  for (Parameter& parameter : model.parameters()) {
    values.push_back(parameter.value);
    parameter.value = parameter.value.detach().requires_grad_();
  }
  constexpr int kWarmUp = 1, kPasses = 4;
  double best = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < kWarmUp + kPasses; ++pass) {
    const Uncaptured uncaptured;
    Stopwatch watch;
    model.forward(images, /*update_statistics=*/false).logits.square().sum().backward();
    // Reading a number waits for the device.
    model.parameters().front().value.grad().sum().item<float>();
    if (pass >= kWarmUp) best = std::min(best, watch.lap());
  }
  for (std::size_t i = 0; i < values.size(); ++i) model.parameters()[i].value = values[i];
  return best;
}

}  // namespace

void set_layout(Model& model, Layout layout, at::IntArrayRef batch_shape) {
  if (layout == Layout::kAuto) {
    layout = model.device().is_cuda() ? Layout::kChannelsLast : Layout::kContiguous;
  }
  if (layout != Layout::kFastest) {
    model.set_memory_format(layout == Layout::kChannelsLast ? at::MemoryFormat::ChannelsLast
                                                            : at::MemoryFormat::Contiguous);
    return;
  }
  const at::Tensor images =
      at::zeros(batch_shape, at::TensorOptions(at::kFloat).device(model.device()));
  model.set_memory_format(at::MemoryFormat::ChannelsLast);
  const double channels_last = time_pass(model, images);
  model.set_memory_format(at::MemoryFormat::Contiguous);
  if (channels_last < time_pass(model, images)) {
    model.set_memory_format(at::MemoryFormat::ChannelsLast);
  }
}

}  // namespace gala
