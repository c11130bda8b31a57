#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/loss/part.h"
#include "gala/model/model.h"
#include "gala/tensor/arena.h"

namespace gala {

/// Batches of the source's images [N, 3, H, W], preprocessed, one at each call; undefined at the end.
using SourceImages = std::function<at::Tensor()>;

/// What holds the parameters back: a term over them, whose gradient is added to that of the loss.
class Penalty : public Part {
 public:
  static constexpr std::string_view kKind = "penalty";

  /// Whether it must see images of the source, once, before anything moves.
  virtual bool wants_source_images() const { return false; }
  /// Learns the source: the parameters as they are now, and images where it wants them. The model is in
  /// the norm mode in which it adapts, and its slots hold the arena's leaves.
  virtual void learn(Model& model, const ParameterArena& parameters,
                     const SourceImages& images) = 0;
  /// Adds the gradient of the penalty. Part of a pass that may be captured: it only queues work.
  virtual void add(const ParameterArena& parameters, Gradients& gradients) const = 0;

  /// The penalty counts by this scalar on the device, which changes in place (Drift).
  void scale_by(const at::Tensor& factor) { factor_ = factor; }

 protected:
  at::Tensor factor_;  ///< undefined: 1
};

std::span<const RegistryEntry<Penalty>> penalty_registry();
std::unique_ptr<Penalty> make_penalty(const Spec& spec);

}  // namespace gala
