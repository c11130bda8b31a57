#pragma once
#include "gala/loss/class_mean.h"
#include "gala/loss/sample_rule.h"

namespace gala {

/// The filter and weights of ETA (Niu et al. 2022, EATA without its Fisher penalty): an image counts
/// when its entropy is below margin · ln C and its answer is not like the moving mean of the answers
/// that counted (|cosine| below `redundancy`), by exp(margin · ln C - entropy). The mean is over the
/// images that count.
class EtaRule : public SampleRule {
 public:
  struct Options {
    double margin = 0.4;
    double redundancy = 0.4;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("margin", &Options::margin, "largest entropy, as a share of ln(classes)");
      option("redundancy", &Options::redundancy, "largest cosine to the mean of earlier answers");
    }
  };
  explicit EtaRule(const Options& options);
  at::Tensor weigh(const SampleInput& input) override;
  void reset() override { seen_.reset(); }
  void remember(StateArchive& archive) override { seen_.remember("samples_eta", archive); }

 private:
  Options options_;
  ClassMean seen_{0.9, /*even=*/false};
};

}  // namespace gala
