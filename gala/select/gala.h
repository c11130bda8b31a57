#pragma once
#include "gala/select/selector.h"

namespace gala {

enum class GalaMode { kSingle, kMultiple };
constexpr std::array<std::string_view, 2> enum_names(GalaMode) {
  return {"single", "multiple"};
}

enum class GalaOpening { kAll, kArgmax };
constexpr std::array<std::string_view, 2> enum_names(GalaOpening) {
  return {"all", "argmax"};
}

enum class MomentsAtReset { kKeep, kReset };
constexpr std::array<std::string_view, 2> enum_names(MomentsAtReset) {
  return {"keep", "reset"};
}

/// Gradient-Aligned Layer Adaptation: the layer whose update u points along its own displacement TD
/// of the current window is the one that moves,
///
///   cos α = u·(u + TD) / (|u| |u + TD|)                         (Eq. 5)
///   m = 1 for the layer of the largest cos α, if cos α > λ       (Eq. 6, single layer)
///
/// and TD is counted anew every `window` steps (Eq. 7). After "A Layer Selection Approach to Test Time
/// Adaptation" (AAAI 2025). Where the paper is silent or contradicts itself, we read it so:
///
///  - A window is `window` optimizer steps; its first step sees TD = 0, so every cosine is exactly 1.
///    (The reset test printed in Algorithm 1 is never true; r in Eq. 7 must be a step, not a window.)
///  - **The opening step decides between success and collapse.** "All layers adapt on the first
///    sample of a window", and "the masked updates are scaled for an initial few samples": neither
///    factor nor number is given. Applied in full, the opening step alone collapses the network as
///    adapting all layers does. What counts is scale × learning rate. So steps 1..opening_steps move
///    every layer by opening_scale · u (or, with opening_rate, by min(1, opening_rate / learning
///    rate) · u), and the threshold is not asked. With opening_ramp the scale of opening step k is
///    further multiplied by k / (opening_steps + 1). The cosine always uses the unscaled u.
///  - **At the default opening the criterion is close to a rotation.** A layer that took the opening
///    step alone has a TD so small that its cosine is 1 but for about 1e-4, whatever the direction of
///    u; once it has moved by a whole update, the cosine of two updates counts, and it falls behind
///    those that have not. So hardly any layer moves twice in a window, none fails the threshold, and
///    the criterion decides the order and, where layers outnumber steps, who is left out. `gala report
///    results --table rotation` counts it.
///  - After a small opening step, layers that have hardly moved all score nearly 1 and the choice
///    hangs on the last digits: hence exact sums in double, and a fixed order among ties. Cosines
///    within `tie` of the largest are a tie: the larger |u| wins, then the earlier layer.
///  - "Largest cosine distance" means the largest cosine. u is the optimizer's whole update, Adam's
///    included; all moments advance at every step (the optimizer's option moments=selected changes
///    that) and are kept over windows (optimizer=reset forgets them).
///  - u = 0 scores 0 and is never chosen while λ >= 0.
class GalaSelector : public Selector {
 public:
  struct Options {
    double threshold = 0.75;
    std::int64_t window = 20;
    GalaMode mode = GalaMode::kSingle;
    GalaOpening opening = GalaOpening::kAll;
    double opening_scale = 0.01;
    double opening_rate = 0;
    std::int64_t opening_steps = 1;
    bool opening_ramp = false;
    Anchor anchor = Anchor::kWindow;
    DisplacementForm displacement = DisplacementForm::kSum;
    double tie = 0;
    MomentsAtReset optimizer = MomentsAtReset::kKeep;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("threshold", &Options::threshold, "a layer moves only if its cosine is above this");
      option("window", &Options::window, "steps after which displacement counts anew; 0: never");
      option("mode", &Options::mode, "move the best layer, or every layer above the threshold");
      option("opening", &Options::opening, "what moves when a window opens");
      option("opening_scale", &Options::opening_scale, "factor on the opening steps of `all`");
      option("opening_rate", &Options::opening_rate,
             "absolute alternative: the learning rate of the opening steps; 0: use the scale");
      option("opening_steps", &Options::opening_steps, "steps that count as opening");
      option("opening_ramp", &Options::opening_ramp, "grow the factor linearly over those steps");
      option("anchor", &Options::anchor, "displacement since this window or the one before");
      option("displacement", &Options::displacement,
             "its own sum of updates, a difference, or a sum of all that were proposed");
      option("tie", &Options::tie, "cosines this near to the largest are equal to it");
      option("optimizer", &Options::optimizer, "moments when a window opens");
    }
  };

  explicit GalaSelector(const Options& options);

  bool reads_values() const override { return false; }
  std::vector<double> select(const Proposal& proposal) override;
  Window window() const override;

 private:
  double opening_weight(const Proposal& proposal) const;

  Options options_;
};

}  // namespace gala
