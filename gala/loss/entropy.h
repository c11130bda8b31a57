#pragma once
#include "gala/loss/loss.h"

namespace gala {

/// Mean entropy of the answers. With `norm_affine` and norm mode `batch` this is Tent (Wang et al.
/// 2021).
class EntropyLoss : public Loss {
 public:
  using Options = NoOptions;

  explicit EntropyLoss(const Options&) {}
  LossTerms evaluate(const LossInput& input) const override;
};

}  // namespace gala
