#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace gala {

/// How the displacement TD is kept.
enum class DisplacementForm {
  kSum,         ///< its own float32 sum of applied updates (first form of Eq. 4)
  kDifference,  ///< θ - anchor; steps too small to change a float32 parameter are lost
  kProposed     ///< the sum of the updates that were proposed, of every layer, whoever moved
};
constexpr std::array<std::string_view, 3> enum_names(DisplacementForm) {
  return {"sum", "difference", "proposed"};
}

/// Since when TD counts.
enum class Anchor {
  kWindow,   ///< since the current window opened
  kPrevious  ///< since the window before it opened
};
constexpr std::array<std::string_view, 2> enum_names(Anchor) {
  return {"window", "previous"};
}

/// How a selector wants the displacement counted.
struct Window {
  std::int64_t length = 0;  ///< steps; 0: never counted anew
  Anchor anchor = Anchor::kWindow;
  DisplacementForm form = DisplacementForm::kSum;
  bool resets_optimizer = false;  ///< moments are forgotten when a window opens
  double keep = 1;                ///< with `proposed`: the share of TD that stays at each step
};

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

}  // namespace gala
