#pragma once
#include "gala/loss/sample_rule.h"

namespace gala {

/// What came long ago counts less: exp(-a) / (1 + exp(-a)), with a the age of an image in lengths of the
/// store that kept it (Yuan et al. 2023, RoTTA).
class AgeRule : public SampleRule {
 public:
  using Options = NoOptions;
  explicit AgeRule(const Options&) {}
  at::Tensor weigh(const SampleInput& input) override;
  bool wants_ages() const override { return true; }
};

}  // namespace gala
