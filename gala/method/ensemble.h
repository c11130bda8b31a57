#pragma once
#include "gala/method/after_step.h"

namespace gala {

/// Weight ensembling (Marsden et al. 2024, ROID): after each step every adapted parameter becomes
/// (1 - source) · itself + source · the source model's.
class EnsembleAfterStep : public AfterStep {
 public:
  struct Options {
    double source = 0.01;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("source", &Options::source, "share of the source model in the mixture");
    }
  };
  explicit EnsembleAfterStep(const Options& options);
  void after(const StepView& view, const StepRecord& record) override;

 private:
  Options options_;
};

}  // namespace gala
