#pragma once
#include "gala/loss/loss.h"

namespace gala {

/// Pseudo-label: cross-entropy against the network's own arg-max labels, over the samples whose
/// largest probability exceeds beta (Lee 2013, as run by Iwasawa & Matsuo 2021). Labels and mask are
/// recomputed at every step and carry no gradient. A batch without a confident sample gives a zero
/// gradient, never NaN. The head adapts too.
class PseudoLabelLoss : public Loss {
 public:
  struct Options {
    double beta = 0.9;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("beta", &Options::beta, "a sample counts when its largest probability exceeds this");
    }
  };

  explicit PseudoLabelLoss(const Options& options);
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
