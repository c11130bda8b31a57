#include "gala/method/probe.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <vector>

namespace gala {

ByLayer::ByLayer(const LayerPartition& layers, std::size_t tensors, at::Device device) {
  const c10::NoGradGuard no_grad;
  std::vector<std::int64_t> layer_of(tensors, 0);
  std::vector<double> counts;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (const std::size_t t : layers[l].tensors) layer_of[t] = static_cast<std::int64_t>(l);
    counts.push_back(static_cast<double>(layers[l].count));
  }
  layer_of_ = at::tensor(layer_of, at::kLong).to(device);
  counts_ = at::tensor(counts, at::kDouble).to(device);
}

at::Tensor ByLayer::sum(const at::Tensor& by_tensor) const {
  return at::zeros_like(counts_).index_add(0, layer_of_, by_tensor.to(at::kDouble));
}

at::Tensor ByLayer::spread(const at::Tensor& by_layer) const {
  return by_layer.index_select(0, layer_of_);
}

}  // namespace gala
