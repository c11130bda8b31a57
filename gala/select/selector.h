#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/registry.h"
#include "gala/layer/archive.h"
#include "gala/layer/filter.h"
#include "gala/layer/layer.h"
#include "gala/layer/layer_sums.h"
#include "gala/layer/layout.h"
#include "gala/layer/window.h"
#include "gala/optim/workspace.h"

namespace gala {

/// What a selector chooses from: the update that every layer would receive, as sums.
struct Proposal {
  const LayerPartition& layers;
  std::span<const LayerSums> sums;
  StepClock clock;
  double learning_rate;
  // For selectors that look at the gradients themselves, which lie on the device.
  const ArenaLayout& layout;
  GradientPointers gradients;
  Workspace& workspace;
  std::span<const double> probed = {};  ///< by layer: what the selector's probe found
  double images = 0;  ///< how many independent images the gradient is of; 0: nobody says
  /// How far statistics are from the source's, 0 to 1 (Output::moved); 1: nobody says.
  double moved = 1;
  double loss = 0;
};

/// The bound of weights that make up for an update that is small: beside more than that float32 rounds everything
/// else away, and at last the weight would be no float.
inline constexpr double kLargestWeight = 1 << 24;

/// Decides how far each layer moves at a step.
class Selector {
 public:
  static constexpr std::string_view kKind = "selector";
  virtual ~Selector() = default;

  /// One weight for each layer, a finite number: 1 moves it by its whole update, 0 not at all.
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
  /// The spec of the probe that it chooses by; one without a name: none.
  virtual Spec probe() const { return {}; }
  /// Takes out of the filter what this selector never moves.
  virtual void restrict(ParameterFilter&) const {}

  /// Forgets everything it learned.
  virtual void reset() {}
  /// Forgets what it learned of parameters that are put back; draws go on.
  virtual void restart() {}
  virtual void remember(Archive&) {}
};

std::span<const RegistryEntry<Selector, std::uint64_t>> selector_registry();
/// `seed` is for selectors that draw.
std::unique_ptr<Selector> make_selector(const Spec& spec, std::uint64_t seed);

}  // namespace gala
