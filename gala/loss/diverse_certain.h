#pragma once
#include "gala/loss/class_mean.h"
#include "gala/loss/sample_rule.h"

namespace gala {

/// The weights of ROID (Marsden et al. 2024). An image's diversity is one minus the cosine between its
/// answer and the moving mean of all answers, its certainty minus its entropy, both stretched to
/// [0, 1] over the batch. Images less diverse than the mean do not count; the others count
/// exp(sharpness · diversity · certainty).
class DiverseCertainRule : public SampleRule {
 public:
  struct Options {
    double sharpness = 3;
    double keep = 0.9;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("sharpness", &Options::sharpness, "the larger, the more weights differ");
      option("keep", &Options::keep, "share of the moving mean that stays at each batch");
    }
  };
  explicit DiverseCertainRule(const Options& options);
  at::Tensor weigh(const SampleInput& input) override;
  void reset() override { seen_.reset(); }
  void remember(StateArchive& archive) override { seen_.remember("samples_diverse", archive); }

 private:
  Options options_;
  ClassMean seen_;
};

}  // namespace gala
