#pragma once
#include "gala/loss/loss.h"

namespace gala {

/// Mean entropy of the answers. With `norm_affine` and norm mode `batch` this is Tent (Wang et al.
/// 2021). With `below` only images of less entropy than that take part, and the mean is over them (PALM,
/// Maharana et al. 2025, with 0.4; other terms of a sum still see every image).
class EntropyLoss : public Loss {
 public:
  struct Options {
    double below = 0;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("below", &Options::below, "only images of less entropy than this, in nats; 0: all");
    }
  };

  explicit EntropyLoss(const Options& options);
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
