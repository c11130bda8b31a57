#pragma once
#include "gala/loss/consistency.h"
#include "gala/loss/teacher_cross_entropy.h"

namespace gala {

/// The cross-entropy against the answers of the source model, under the norm mode at hand and with running
/// statistics of its own (the anchor of PeTTA, Hoang et al. 2024).
class SourceCrossEntropyLoss : public Loss {
 public:
  struct Options {
    LookAt look = LookAt::kView;
    double weight = 1;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("look", &Options::look, "which of the student's answers are compared");
      option("weight", &Options::weight, "beside the other terms");
    }
  };

  explicit SourceCrossEntropyLoss(const Options& options);
  LossNeeds needs() const override {
    LossNeeds needs = needs_of(options_.look);
    needs.source = true;
    return needs;
  }
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
