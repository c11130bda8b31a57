#pragma once
#include "gala/loss/consistency.h"
#include "gala/loss/loss.h"

namespace gala {

/// The mean over images of the cross-entropy between a teacher's answer t and the student's p:
/// -Σ_c t_c log p_c, or symmetrically half of that and half of -Σ_c p_c log t_c. CoTTA (Wang et al. 2022)
/// has the first on CIFAR and the second on ImageNet-C.
class TeacherCrossEntropyLoss : public Loss {
 public:
  struct Options {
    Comparison form = Comparison::kCrossEntropy;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("form", &Options::form, "how the two answers are compared");
    }
  };

  explicit TeacherCrossEntropyLoss(const Options& options) : options_(options) {}
  LossNeeds needs() const override { return {.teacher = true}; }
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
