#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <span>
#include <vector>

#include "gala/optim/sweep_kernels.h"
#include "gala/tensor/arena.h"
#include "gala/tensor/displacement.h"
#include "gala/tensor/layer.h"

namespace gala {

// The passes over the arena that every optimizer shares. A Rule is a small value with the numbers of
// one step:
//
//   static constexpr int kMoments;  // at least one
//   template <class T> void advance(const T& gradient, const T& value, T* moments) const;
//   template <class T> T update(const T& gradient, const T& value, const T* moments) const;
//   bool reads_values() const;  // false: the kernels may give zeros for the values
//
// T is float in the kernels and at::Tensor in the plain pass, so that a formula stands once.
// `advance` makes the new moments, `update` the displacement of the parameter from the new moments.

/// One moment buffer for each moment of a rule.
template <class Rule>
using MomentBuffers = std::array<at::Tensor, Rule::kMoments>;

/// What the passes of one optimizer have in common; all of it outlives them.
template <class Rule>
struct SweepContext {
  const ParameterArena& arena;
  const LayerPartition& layers;
  const MomentBuffers<Rule>& moments;
  bool sum_values;  ///< whether anybody asks for |θ|²
};

/// The two passes, on one device. `measure` only queues work and, where `can_be_captured`, can be part
/// of a captured graph; `set_rules` and `apply` cannot.
template <class Rule>
class Sweep {
 public:
  virtual ~Sweep() = default;
  /// Whether work that was captured once goes by the rules of each step.
  virtual bool can_be_captured() const { return true; }
  /// The rules of the coming step, one for each layer; see Optimizer::prepare.
  virtual void set_rules(std::span<const Rule> rules) = 0;
  /// Fills `table` (double [layers, kSumColumns], on the arena's device). With `commit` the moments
  /// advance, unless the loss or a gradient is not finite.
  virtual void measure(const Gradients& gradients, const at::Tensor& loss,
                       const Displacement& displacement, bool commit, const at::Tensor& table) = 0;
  /// Moves each layer by its weight times its update. With `advance` the moments are not those of
  /// this step yet.
  virtual void apply(const Gradients& gradients, const Displacement& displacement, bool advance,
                     std::span<const double> weights) = 0;
};

/// Every tensor of every layer, in order, in pieces of at most `size` elements.
std::vector<SweepChunk> make_chunks(const ParameterArena& arena, const LayerPartition& layers,
                                    std::int64_t size);

/// The pointers of a pass; rules and flags are still to be set.
template <class Rule>
SweepView<Rule> make_view(const SweepContext<Rule>& context, const Displacement& displacement) {
  SweepView<Rule> view;
  view.values = context.arena.values().template mutable_data_ptr<float>();
  for (int k = 0; k < Rule::kMoments; ++k) {
    view.moments[k] = context.moments[k].template mutable_data_ptr<float>();
  }
  view.difference = displacement.form() == DisplacementForm::kDifference;
  view.shift = displacement.buffer().mutable_data_ptr<float>();
  if (!view.difference && displacement.recent().defined()) {
    view.recent = displacement.recent().mutable_data_ptr<float>();
  }
  view.sum_values = context.sum_values;
  return view;
}

inline const float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

}  // namespace gala
