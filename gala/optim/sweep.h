#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gala/layer/layer.h"
#include "gala/layer/layout.h"
#include "gala/layer/memory.h"
#include "gala/optim/sweep_kernels.h"

namespace gala {

class Workspace;

// The passes over the arena that every optimizer shares. A Rule is a small value with the numbers of
// one step:
//
//   static constexpr int kMoments;  // at least one
//   template <class T> void advance(const T& gradient, const T& value, T* moments) const;
//   template <class T> T update(const T& gradient, const T& value, const T* moments) const;
//   bool reads_values() const;  // false: the kernels may give zeros for the values
//
// T is float in the kernels and at::Tensor in the plain pass (gala/tensor/plain_sweep.h), so that a
// formula stands once. `advance` makes the new moments, `update` the displacement of the parameter
// from the new moments.

/// The gradients of one backward pass, on the device: one for each tensor of the arena, in the order
/// of its elements there. Null stands for zeros.
using GradientPointers = std::span<const float* const>;

/// One moment buffer for each moment of a rule.
template <class Rule>
using MomentBuffers = std::array<Memory, Rule::kMoments>;

/// What the passes of one optimizer have in common; all of it outlives them.
template <class Rule>
struct SweepContext {
  const ArenaLayout& layout;
  const LayerPartition& layers;
  float* values;
  const MomentBuffers<Rule>& moments;
  bool sum_values;  ///< whether anybody asks for |θ|²
  Workspace& workspace;
};

/// The two passes, on one device. `measure` only queues work and, where `can_be_captured`, can be part
/// of a captured graph; `set_rules` and `apply` cannot.
template <class Rule>
class Sweep {
 public:
  virtual ~Sweep() = default;
  /// Whether work that was captured once goes by the rules of each step.
  virtual bool can_be_captured() const { return true; }
  /// The rules of the coming step, one for each layer; see Optimizer::prepare. `measures`: whether a
  /// pass that measures comes first.
  virtual void set_rules(std::span<const Rule> rules, bool measures) = 0;
  /// Fills `table` (kSumColumns doubles for each layer, on the device). With `commit` the moments
  /// advance, unless the loss or a gradient is not finite.
  virtual void measure(GradientPointers gradients, const float* loss,
                       const DisplacementView& displacement, bool commit, double* table) = 0;
  /// Moves each layer by its weight times its update. With `advance` the moments are not those of
  /// this step yet.
  virtual void apply(GradientPointers gradients, const DisplacementView& displacement, bool advance,
                     std::span<const double> weights) = 0;
};

/// Every tensor of every layer, in order, in pieces of at most `size` elements.
std::vector<SweepChunk> make_chunks(const ArenaLayout& layout, const LayerPartition& layers,
                                    std::int64_t size);

/// The pointers of a pass; rules and flags are still to be set.
template <class Rule>
SweepView<Rule> make_view(const SweepContext<Rule>& context, const DisplacementView& displacement) {
  SweepView<Rule> view;
  view.values = context.values;
  for (int k = 0; k < Rule::kMoments; ++k) view.moments[k] = context.moments[k].data();
  view.displacement = displacement;
  view.sum_values = context.sum_values;
  return view;
}

}  // namespace gala
