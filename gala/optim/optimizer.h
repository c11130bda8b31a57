#pragma once
#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/layer/archive.h"
#include "gala/layer/layer.h"
#include "gala/layer/layout.h"
#include "gala/optim/sweep.h"
#include "gala/optim/workspace.h"

namespace gala {

/// Whose moments advance at a step.
enum class Moments {
  kAll,      ///< every layer's, whether it moves or not: only the application is masked
  kSelected  ///< only those of the layers that move
};
constexpr std::array<std::string_view, 2> enum_names(Moments) {
  return {"all", "selected"};
}

/// What an optimizer works on; all of it outlives the optimizer.
struct StepSite {
  const ArenaLayout& layout;
  const LayerPartition& layers;
  float* values;  ///< the parameters, in the layout and in the workspace's memory
  Workspace& workspace;
  bool sum_values = false;  ///< whether anybody will ask for |θ|²
};

/// Turns gradients into an update for every layer, sums it up, and moves the layers it is told to.
/// It belongs to one site and keeps its moments in the arena's layout.
class Optimizer {
 public:
  static constexpr std::string_view kKind = "optimizer";
  virtual ~Optimizer() = default;

  /// Makes zero moments. Called once, before anything else.
  virtual void attach(const StepSite& site) = 0;
  /// Whether `measure`, captured once, does the same at every later step.
  virtual bool can_be_captured() const { return true; }
  /// Makes ready for a step, before `measure`. What was measured at the step before must have been
  /// waited for.
  virtual void prepare() = 0;
  /// Advances the moments and sums up the update each layer would receive, a row of kSumColumns
  /// doubles of `table` for each layer, on the device (see read_sums). No parameter moves. Where
  /// the loss or a gradient is not finite no moment moves either, and with `moments=selected` never.
  /// It only queues work on the device, so that a captured graph can hold it.
  virtual void measure(GradientPointers gradients, const float* loss,
                       const DisplacementView& displacement, double* table) = 0;
  /// Moves each layer, and its displacement, by its weight times the update just measured.
  virtual void apply(GradientPointers gradients, const DisplacementView& displacement,
                     std::span<const double> weights) = 0;
  /// A whole step of every layer, as optimizers elsewhere make it; nothing is measured.
  virtual void step(GradientPointers gradients) = 0;

  virtual double learning_rate() const = 0;
  /// From the next update on; for schedules.
  virtual void set_learning_rate(double rate) = 0;
  /// Forgets moments and step counts.
  virtual void reset() = 0;
  virtual void remember(Archive& archive) = 0;
};

std::span<const RegistryEntry<Optimizer>> optimizer_registry();
std::unique_ptr<Optimizer> make_optimizer(const Spec& spec);

}  // namespace gala
