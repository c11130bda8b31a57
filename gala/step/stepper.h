#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gala/layer/archive.h"
#include "gala/layer/layer.h"
#include "gala/layer/layer_sums.h"
#include "gala/layer/layout.h"
#include "gala/layer/window.h"
#include "gala/optim/optimizer.h"
#include "gala/optim/workspace.h"
#include "gala/select/selector.h"
#include "gala/step/displacement.h"
#include "gala/step/step_record.h"

namespace gala {

/// What a selector may ask of a step beside the sums; see Proposal.
struct Circumstances {
  std::span<const double> probed = {};
  double images = 0;
  double moved = 1;
};

/// A step after backward: measures the update of every layer, lets the selector choose, moves what it
/// chose. It holds what that takes (optimizer, selector, displacement, window, clock) and knows
/// neither network nor loss, nor LibTorch: parameters and gradients are pointers.
///
///   auto selector = make_selector("gala", 0);
///   selector->attach(layers);
///   gala::Stepper stepper(layout, values, layers, make_optimizer("adam"), std::move(selector),
///                         std::make_unique<gala::HostWorkspace>());
///   StepRecord record = stepper.step(gradients, &loss);
class Stepper {
 public:
  /// `values` are the parameters, in the layout and in the workspace's memory; they outlive this.
  /// The selector knows its layers already (Selector::attach).
  Stepper(ArenaLayout layout, float* values, LayerPartition layers,
          std::unique_ptr<Optimizer> optimizer, std::unique_ptr<Selector> selector,
          std::unique_ptr<Workspace> workspace);

  // A step in three parts, for those who capture the middle one.

  /// Opens the window where it is time, and makes the optimizer ready. Before `measure`.
  void begin();
  /// Queues the sums of every layer's update into `table` (kSumColumns doubles for each layer, on the
  /// device). Loss and gradients lie there too.
  void measure(GradientPointers gradients, const float* loss, double* table);
  /// Chooses and moves, by sums that `measure` made and the host waited for. Where the loss, a
  /// gradient or an update is not finite, the step is refused: no parameter moves.
  StepRecord move(GradientPointers gradients, double loss, std::span<const LayerSums> sums,
                  const Circumstances& around = {});

  /// In place of `move` where there is nothing to learn from: no parameter moves, and the step does not
  /// count. What `measure` was given as a loss must not have been finite, so that no moment moved.
  StepRecord pause(double loss) const;

  /// All three at once.
  StepRecord step(GradientPointers gradients, const float* loss);

  /// Whether `measure`, captured once, does the same at every later step.
  bool can_be_captured() const { return optimizer_->can_be_captured(); }
  /// True when no layer ever moves.
  bool idle() const { return selector_->idle(); }
  /// The spec of the probe that the selector chooses by; one without a name: none.
  Spec probe() const { return selector_->probe(); }

  const ArenaLayout& layout() const { return layout_; }
  const LayerPartition& layers() const { return layers_; }
  const StepClock& clock() const { return clock_; }
  const Displacement& displacement() const { return *displacement_; }
  double learning_rate() const { return optimizer_->learning_rate(); }

  /// Forgets everything but the parameters, which are the caller's to put back.
  void reset();
  /// The same, but draws of the selector go on.
  void restart();
  /// Everything that later steps depend on, but for the parameters.
  void remember(Archive& archive);

  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

 private:
  ArenaLayout layout_;
  LayerPartition layers_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Selector> selector_;
  Window window_;
  StepClock clock_;
  bool window_open_ = false;  ///< by `begin`, and no step has moved since
  std::optional<Displacement> displacement_;
  Memory table_;  ///< of `step`
};

}  // namespace gala
