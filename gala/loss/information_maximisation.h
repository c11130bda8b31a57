#pragma once
#include "gala/loss/loss.h"

namespace gala {

/// Information maximisation, the first two terms of SHOT (Liang et al. 2020, as run by Iwasawa &
/// Matsuo 2021): mean entropy of the answers minus the entropy of their mean,
///   mean_n H(p_n) + Σ_c p̄_c log(p̄_c + epsilon).
/// The head is frozen.
class InformationMaximisationLoss : public Loss {
 public:
  struct Options {
    double epsilon = 1e-5;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("epsilon", &Options::epsilon, "added inside the logarithm of the diversity term");
    }
  };

  explicit InformationMaximisationLoss(const Options& options);
  LossTerms evaluate(const LossInput& input) const override;
  bool adapts_head() const override { return false; }

 private:
  Options options_;
};

}  // namespace gala
