#pragma once
#include <cstdint>

#include "gala/loss/loss.h"

namespace gala {

/// The entropy of the mean answer to several looks at an image, -Σ_c p̄_c log p̄_c, and the mean of that over the
/// images (Zhang et al. 2022, MEMO, which adapts to one image at a time and goes back after each).
class MarginalEntropyLoss : public Loss {
 public:
  struct Options {
    std::int64_t looks = 32;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("looks", &Options::looks, "looks at each image (--view)");
    }
  };
  explicit MarginalEntropyLoss(const Options& options);
  LossNeeds needs() const override {
    return {.images = false, .view = SecondLook::kAll, .looks = static_cast<int>(options_.looks)};
  }
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
