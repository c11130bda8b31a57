#pragma once
#include "gala/loss/sample_rule.h"

namespace gala {

/// The filter and weights of DeYO (Lee et al. 2024). An image counts when its entropy is below
/// margin · ln C and the probability of its label falls by more than `drop` when its patches are shuffled
/// (`--view patches`): then the label hangs on its shape. It counts exp(0.4 ln C - entropy) + exp(fall), and the
/// mean is over the images that count. As in the published code the shuffled images of low entropy are a
/// batch of their own, with statistics of their own.
class DeyoRule : public SampleRule {
 public:
  struct Options {
    double margin = 0.5;
    double drop = 0.2;
    double weight_margin = 0.4;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("margin", &Options::margin, "largest entropy, as a share of ln(classes)");
      option("drop", &Options::drop, "least fall of the label's probability");
      option("weight_margin", &Options::weight_margin,
             "entropy at which an image weighs 1 by it, as a share of ln(classes)");
    }
  };
  explicit DeyoRule(const Options& options);
  at::Tensor weigh(const SampleInput& input) override;
  at::Tensor wants(const SampleInput& input) const override;
  bool looks_again() const override { return true; }

 private:
  at::Tensor sure(const at::Tensor& entropy, const SampleInput& input) const;

  Options options_;
};

}  // namespace gala
