#pragma once
#include "gala/loss/sample_rule.h"

namespace gala {

/// Images whose entropy is below margin · ln C count, all alike; the mean is over them (Niu et al. 2023,
/// SAR, which asks at both of its passes).
class CertainRule : public SampleRule {
 public:
  struct Options {
    double margin = 0.4;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("margin", &Options::margin, "largest entropy, as a share of ln(classes)");
    }
  };
  explicit CertainRule(const Options& options);
  at::Tensor weigh(const SampleInput& input) override;

 private:
  Options options_;
};

}  // namespace gala
