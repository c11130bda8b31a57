#pragma once
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "gala/base/registry.h"
#include "gala/tensor/arena.h"
#include "gala/tensor/displacement.h"
#include "gala/tensor/layer.h"
#include "gala/tensor/layer_sums.h"

namespace gala {

/// Whose moments advance at a step.
enum class Moments {
  kAll,      ///< every layer's, whether it moves or not: only the application is masked
  kSelected  ///< only those of the layers that move
};
constexpr std::array<std::string_view, 2> enum_names(Moments) {
  return {"all", "selected"};
}

/// Turns gradients into an update for every layer, sums it up, and moves the layers it is told to.
/// It belongs to one arena, partition and displacement, and keeps its moments in the arena's layout.
class Optimizer {
 public:
  static constexpr std::string_view kKind = "optimizer";
  virtual ~Optimizer() = default;

  /// Makes zero moments for an arena. Called once, before anything else. `sum_values`: whether
  /// anybody will ask for |θ|².
  virtual void attach(const ParameterArena& arena, const LayerPartition& layers,
                      bool sum_values) = 0;
  /// Whether `measure`, captured once, does the same at every later step.
  virtual bool can_be_captured() const { return true; }
  /// Makes ready for a step, before `measure` or, where nobody ever measures, before `apply`. What
  /// was measured at the step before must have been waited for.
  virtual void prepare() = 0;
  /// Advances the moments and sums up the update each layer would receive, a row a layer of `table`
  /// (double [layers, kSumColumns] on the arena's device, see read_sums). No parameter moves. Where
  /// the loss or a gradient is not finite no moment moves either, and with `moments=selected` never.
  /// It only queues work on the device, so that a captured graph can hold it.
  virtual void measure(const Gradients& gradients, const at::Tensor& loss,
                       const Displacement& displacement, const at::Tensor& table) = 0;
  /// Moves each layer, and its displacement, by its weight times the update just measured.
  virtual void apply(const Gradients& gradients, const Displacement& displacement,
                     std::span<const double> weights) = 0;

  virtual double learning_rate() const = 0;
  /// From the next update on; for schedules.
  virtual void set_learning_rate(double rate) = 0;
  /// Forgets moments and step counts.
  virtual void reset() = 0;
  virtual void save(const ParameterArena& arena, State& state) const = 0;
  virtual void load(const ParameterArena& arena, const State& state) = 0;
};

std::span<const RegistryEntry<Optimizer>> optimizer_registry();
std::unique_ptr<Optimizer> make_optimizer(const Spec& spec);

}  // namespace gala
