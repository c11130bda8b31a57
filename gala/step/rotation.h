#pragma once
#include <cstdint>
#include <set>
#include <string>

#include "gala/step/step_record.h"

namespace gala {

/// Whether choices of single layers go round: how often one fell on a layer that had been chosen
/// before in the same window. A rotation never repeats while a window is shorter than the list of
/// layers.
struct Rotation {
  std::int64_t choices = 0;  ///< steps at which one layer moved
  std::int64_t repeats = 0;  ///< of them, those of a layer that its window had chosen before
  double by_chance = 0;      ///< repeats to be expected of as many even, independent draws

  /// "3 of 120 choices (2.5 %; by chance 16.4 %)".
  std::string repeats_text() const;
  bool operator==(const Rotation&) const = default;
};

/// Counts the choices of a run, step by step.
class RotationCount {
 public:
  explicit RotationCount(std::size_t layers) : layers_(layers) {}

  void take(const StepRecord& step);
  void open_window();
  /// The one layer that moved.
  void choose(std::int64_t layer);
  const Rotation& total() const { return total_; }

  nlohmann::json save() const;
  void load(const nlohmann::json& saved);

 private:
  std::size_t layers_;
  Rotation total_;
  std::set<std::int64_t> seen_;  ///< in the open window
  std::int64_t in_window_ = 0;   ///< choices of the open window
};

}  // namespace gala
