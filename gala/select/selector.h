#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gala/base/registry.h"
#include "gala/model/partition.h"
#include "gala/tensor/arena.h"
#include "gala/tensor/displacement.h"
#include "gala/tensor/layer.h"
#include "gala/tensor/layer_sums.h"

namespace gala {

/// Where a step stands. It counts optimizer steps, inner and skipped ones too; a refused step (loss
/// or gradient not finite) is not counted.
struct StepClock {
  std::int64_t step = 1;         ///< 1, 2, ... since the start or the last reset
  std::int64_t window_step = 1;  ///< 1, 2, ... within the window

  bool opens_window() const { return window_step == 1; }
  /// To the next step; a window of length 0 never ends.
  void advance(std::int64_t window_length) {
    ++step;
    window_step = window_length > 0 && window_step >= window_length ? 1 : window_step + 1;
  }
};

/// How a selector wants its displacement counted.
struct Window {
  std::int64_t length = 0;  ///< steps; 0: never counted anew
  Anchor anchor = Anchor::kWindow;
  DisplacementForm form = DisplacementForm::kSum;
  bool resets_optimizer = false;  ///< moments are forgotten when a window opens
};

/// What a selector chooses from: the update that every layer would receive, as sums.
struct Proposal {
  const LayerPartition& layers;
  std::span<const LayerSums> sums;
  StepClock clock;
  double learning_rate;
  const Gradients& gradients;
  const ParameterArena& parameters;
};

/// Decides how far each layer moves at a step.
class Selector {
 public:
  static constexpr std::string_view kKind = "selector";
  virtual ~Selector() = default;

  /// One weight in [0, 1] for each layer.
  virtual std::vector<double> select(const Proposal& proposal) = 0;

  /// Learns which run this is, for selectors that draw: equal runs have equal names. Called once,
  /// before the first choice.
  virtual void name_run(const std::string&) {}
  /// Learns the layers it will choose from. Called once, before the first choice; throws ConfigError
  /// when its options do not fit them.
  virtual void attach(const LayerPartition&) {}
  /// True when no layer ever moves: then nothing need be measured.
  virtual bool idle() const { return false; }
  /// Whether |θ|² must be summed up; a selector that never looks at it saves a pass over memory.
  virtual bool reads_values() const { return true; }
  virtual Window window() const { return {}; }
  /// The granularity used when the user names none.
  virtual Granularity default_granularity() const { return Granularity::kModule; }
  /// Takes out of the filter what this selector never moves.
  virtual void restrict(ParameterFilter&) const {}

  /// Forgets everything it learned.
  virtual void reset() {}
  /// Forgets what it learned of parameters that are put back; draws go on.
  virtual void restart() {}
  virtual void save(State&) const {}
  virtual void load(const State&) {}
};

std::span<const RegistryEntry<Selector, std::uint64_t>> selector_registry();
/// `seed` is for selectors that draw.
std::unique_ptr<Selector> make_selector(const Spec& spec, std::uint64_t seed);

}  // namespace gala
