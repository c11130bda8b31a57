#pragma once
#include "gala/loss/loss.h"

namespace gala {

/// Generalised cross-entropy against the network's own labels (Zhang & Sabuncu 2018): the mean of
/// (1 - p_y^q) / q with y the class of the largest logit. With `norm_affine` and norm mode `batch` this
/// is RPL (Rusak et al. 2022). It bounds what one image can do: q towards 0 is cross-entropy, 1 is
/// the mean absolute error.
class GeneralisedCrossEntropyLoss : public Loss {
 public:
  struct Options {
    double q = 0.8;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("q", &Options::q, "0 < q <= 1; the larger, the less unsure images count");
    }
  };

  explicit GeneralisedCrossEntropyLoss(const Options& options);
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
