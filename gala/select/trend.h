#pragma once
#include "gala/select/selector.h"

namespace gala {

enum class TrendScore { kCosine, kExcess, kNoise };
constexpr std::array<std::string_view, 3> enum_names(TrendScore) {
  return {"cosine", "excess", "noise"};
}

enum class TrendMode { kSingle, kMultiple, kWeights };
constexpr std::array<std::string_view, 3> enum_names(TrendMode) {
  return {"single", "multiple", "weights"};
}

/// GALA's idea with a displacement that every layer has: D takes in the update u that was *proposed*, moved or not,
///   D ← keep · D + u,
/// so that all layers are compared by as long a past, no opening step is needed, and having moved is no
/// disadvantage. (GALA's TD holds what was applied, and most layers never move in a window: their cosine is 1 whatever
/// the direction of u.) A layer's score at a step, by D as it was before, is
///
///  - `cosine`: cos α = u·(u + D) / (|u| |u + D|), GALA's own.
///  - `excess`: cos α less what it would be for a u that is at right angles to D, as noise is in many
///    dimensions: |u| / √(|u|² + |D|²). It is 0 for noise, however long D is.
///  - `noise`: √n u·D / (|u| |D|), for a layer of n numbers: how many standard deviations the agreement of u and D is
///    above that of noise. It does not favour small layers, whose cosines are large by chance.
///
/// `single` moves the layer of the largest score, if that is above the threshold (the first among equals); `multiple` all
/// layers above it; `weights` each layer by score / threshold, from 0 to 1. A layer whose D is zero does not move: none
/// does at the first step, and where a window opens.
class TrendSelector : public Selector {
 public:
  struct Options {
    TrendScore score = TrendScore::kCosine;
    TrendMode mode = TrendMode::kSingle;
    double threshold = 0;
    double keep = 0.9;
    std::int64_t window = 0;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("score", &Options::score, "how an update and the sum of those before are compared");
      option("mode", &Options::mode, "move the best layer, all above the threshold, or by score");
      option("threshold", &Options::threshold, "a layer moves only if its score is above this");
      option("keep", &Options::keep, "share of the sum of proposed updates that stays at a step");
      option("window", &Options::window, "steps after which that sum begins anew; 0: never");
    }
  };

  explicit TrendSelector(const Options& options);

  bool reads_values() const override { return false; }
  std::vector<double> select(const Proposal& proposal) override;
  Window window() const override {
    return {.length = options_.window, .form = DisplacementForm::kProposed, .keep = options_.keep};
  }

 private:
  Options options_;
};

}  // namespace gala
