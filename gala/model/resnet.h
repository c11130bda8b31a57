#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "gala/model/chain.h"

namespace gala {

/// Where a bottleneck block that halves its maps does so.
enum class BottleneckStride {
  kSecond,  ///< in the 3x3 convolution
  kFirst    ///< in the first 1x1 convolution, as in the paper's first version and in Keras
};
constexpr std::array<std::string_view, 2> enum_names(BottleneckStride) {
  return {"second", "first"};
}

/// Residual networks for ImageNet (He et al., 2016), with the parameter names and the default
/// structure of torchvision's weight files: a 7x7 stem and four stages `layer1` to `layer4`, which
/// are the blocks 1 to 4. Any input size will do. Default preprocessing: ImageNet, size 224.
class ResNet : public ChainModel {
 protected:
  struct Layout {
    std::array<std::int64_t, 4> blocks;  ///< in each stage
    bool bottleneck;
    BottleneckStride stride;
    double norm_epsilon;
  };

  ResNet(Spec spec, std::int64_t classes, const Layout& layout);

  int stages() const override { return 1 + static_cast<int>(blocks_.size()); }
  at::Tensor run_stage(int stage, const at::Tensor& maps, const NormPass& pass) const override;

 private:
  ConvolutionNorm stem_;
  std::vector<ResidualBlock> blocks_;
};

struct ResNetOptions {
  std::int64_t classes = 1000;
  double norm_epsilon = 1e-5;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("classes", &ResNetOptions::classes, "number of classes");
    option("norm_epsilon", &ResNetOptions::norm_epsilon, "added to variances");
  }
};

struct BottleneckResNetOptions {
  std::int64_t classes = 1000;
  BottleneckStride stride = BottleneckStride::kSecond;
  double norm_epsilon = 1e-5;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("classes", &BottleneckResNetOptions::classes, "number of classes");
    option("stride", &BottleneckResNetOptions::stride, "the convolution that halves the maps");
    option("norm_epsilon", &BottleneckResNetOptions::norm_epsilon, "added to variances");
  }
};

class ResNet18 : public ResNet {
 public:
  using Options = ResNetOptions;
  explicit ResNet18(const Options& options);
};

class ResNet34 : public ResNet {
 public:
  using Options = ResNetOptions;
  explicit ResNet34(const Options& options);
};

class ResNet50 : public ResNet {
 public:
  using Options = BottleneckResNetOptions;
  explicit ResNet50(const Options& options);
};

}  // namespace gala
