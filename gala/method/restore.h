#pragma once
#include "gala/method/after_step.h"

namespace gala {

/// Random restore (Wang et al. 2022, CoTTA): after each step every adapted number goes back to the source
/// with probability `share`.
class RestoreAfterStep : public AfterStep {
 public:
  struct Options {
    double share = 0.01;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("share", &Options::share, "probability of a number to go back, at each step");
    }
  };
  explicit RestoreAfterStep(const Options& options);
  void after(const StepView& view, const StepRecord& record) override;

 private:
  Options options_;
};

}  // namespace gala
