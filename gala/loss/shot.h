#pragma once
#include "gala/loss/loss.h"

namespace gala {

/// SHOT (Liang et al. 2020) in the online form of Iwasawa & Matsuo 2021:
///   mean_n H(p_n) + Σ_c p̄_c log(p̄_c + 1e-5) + theta · PL(beta),
/// where PL is the thresholded pseudo-label cross-entropy on the current logits (not SHOT's
/// cluster-refined labels, which need the whole target set). The head is frozen.
class ShotLoss : public Loss {
 public:
  struct Options {
    double beta = 0.9;
    double theta = 0.1;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("beta", &Options::beta, "a sample counts when its largest probability exceeds this");
      option("theta", &Options::theta, "weight of the pseudo-label term");
    }
  };

  explicit ShotLoss(const Options& options);
  LossTerms evaluate(const LossInput& input) const override;
  bool adapts_head() const override { return false; }

 private:
  Options options_;
};

}  // namespace gala
