#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/layer/layer.h"
#include "gala/loss/part.h"
#include "gala/model/model.h"
#include "gala/tensor/arena.h"

namespace gala {

/// A second gradient, of another scalar than the loss, from which a selector learns what it cannot see in
/// the updates. It is taken from the forward pass that the loss comes from, so it costs one backward
/// pass. Selectors name theirs (Selector::probe). Everything here is part of a pass that may be captured.
class Probe : public Part {
 public:
  static constexpr std::string_view kKind = "probe";

  /// Learns what there is, once, before anything else.
  virtual void attach(const ParameterArena& parameters, const LayerPartition& layers) = 0;
  /// What is differentiated.
  virtual at::Tensor scalar(const Output& output) const = 0;
  /// What it finds in the gradients: double [layers], on the device.
  virtual at::Tensor look(const ParameterArena& parameters, const Gradients& gradients) = 0;
  /// Sees the gradients of the step, after it looked at its own.
  virtual void see(const ParameterArena& /*parameters*/, const Gradients& /*gradients*/) {}
};

std::span<const RegistryEntry<Probe>> probe_registry();
std::unique_ptr<Probe> make_probe(const Spec& spec);

/// Sums over the tensors of each layer.
class ByLayer {
 public:
  ByLayer() = default;
  ByLayer(const LayerPartition& layers, std::size_t tensors, at::Device device);

  /// From one number a tensor, [tensors], one a layer, double [layers].
  at::Tensor sum(const at::Tensor& by_tensor) const;
  /// From one number a layer, the one of each tensor's.
  at::Tensor spread(const at::Tensor& by_layer) const;
  /// Numbers in a layer, double [layers].
  const at::Tensor& counts() const { return counts_; }

 private:
  at::Tensor layer_of_;  ///< long [tensors]
  at::Tensor counts_;
};

}  // namespace gala
