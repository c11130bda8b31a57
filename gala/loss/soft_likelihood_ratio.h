#pragma once
#include "gala/loss/loss.h"

namespace gala {

/// Soft likelihood ratio (Marsden et al. 2024, ROID): the mean of -Σ_c p_c log(p_c / (1 - p_c) + 1e-5),
/// with p clipped at `clip`. Unlike entropy, its gradient does not vanish for images the network is sure
/// of; the clipping ends it where p is larger.
class SoftLikelihoodRatioLoss : public Loss {
 public:
  struct Options {
    double clip = 0.99;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("clip", &Options::clip, "largest probability that is told apart, below 1");
    }
  };

  explicit SoftLikelihoodRatioLoss(const Options& options);
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
