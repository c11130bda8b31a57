#pragma once
#include "gala/method/after_step.h"

namespace gala {

/// Continual momentum filtering (Lee & Chang 2024, CMF). A hidden copy h of the parameters θ follows them
/// like a Kalman filter; the source is θ₀. After each step
///   h ← α h + (1-α) θ₀,  v ← α² v + q,  β = r / (v + r) with r = 1 - q,  v ← β v,
///   h ← β h + (1-β) θ,  θ ← γ θ + (1-γ) h.
/// As in the published code q = noise · (adapted parameters) / 38,400, β is at least 0.89, and 1 where it
/// is 0.9999 or more.
class KalmanAfterStep : public AfterStep {
 public:
  struct Options {
    double alpha = 0.99;
    double gamma = 0.99;
    double noise = 0.005;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("alpha", &Options::alpha,
             "share of the hidden copy that stays when it nears the source");
      option("gamma", &Options::gamma, "share of the parameters that stays in the mixture");
      option("noise", &Options::noise, "of the process, for 38,400 parameters");
    }
  };
  explicit KalmanAfterStep(const Options& options);
  void after(const StepView& view, const StepRecord& record) override;
  void reset() override;
  void remember(StateArchive& archive) override;

 private:
  Options options_;
  at::Tensor hidden_;  ///< in the arena's layout; undefined: the source
  double variance_ = 0;
};

}  // namespace gala
