#pragma once
#include <vector>

#include "gala/model/chain.h"

namespace gala {

struct ResNextOptions {
  std::int64_t cardinality = 4;
  std::int64_t base_width = 32;
  std::int64_t classes = 100;
  double norm_epsilon = 1e-5;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("cardinality", &ResNextOptions::cardinality, "groups of the 3x3 convolutions");
    option("base_width", &ResNextOptions::base_width, "channels of a group in the first stage");
    option("classes", &ResNextOptions::classes, "number of classes");
    option("norm_epsilon", &ResNextOptions::norm_epsilon, "added to variances");
  }
};

/// ResNeXt-29 for small images (Xie et al., 2017): three stages of three bottleneck blocks with
/// grouped 3x3 convolutions. Names and structure are those of RobustBench's weight files: `stage_1`
/// to `stage_3` are the blocks 1 to 3. Default preprocessing: mean .5, std .5, size 32.
class ResNext29 : public ChainModel {
 public:
  using Options = ResNextOptions;
  explicit ResNext29(const Options& options);

 protected:
  int stages() const override { return 1 + static_cast<int>(blocks_.size()); }
  at::Tensor run_stage(int stage, const at::Tensor& maps, const NormPass& pass) const override;

 private:
  ConvolutionNorm stem_;
  std::vector<ResidualBlock> blocks_;
};

}  // namespace gala
