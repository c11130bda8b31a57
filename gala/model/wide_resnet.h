#pragma once
#include <optional>
#include <vector>

#include "gala/model/chain.h"

namespace gala {

struct WideResNetOptions {
  std::int64_t depth = 28;
  std::int64_t width = 10;
  std::int64_t classes = 10;
  double norm_epsilon = 1e-5;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("depth", &WideResNetOptions::depth, "convolutions in a row: 6n + 4");
    option("width", &WideResNetOptions::width, "factor on the 16, 32 and 64 channels");
    option("classes", &WideResNetOptions::classes, "number of classes");
    option("norm_epsilon", &WideResNetOptions::norm_epsilon, "added to variances");
  }
};

/// Wide residual network for small images (Zagoruyko and Komodakis, 2016): norm and relu stand
/// before each convolution, no dropout. Names and structure are those of RobustBench's weight
/// files: `block1` to `block3`, then a last norm `bn1`, which joins block 3, and `fc`. Default
/// preprocessing: [0, 1] as it is, size 32.
class WideResNet : public ChainModel {
 public:
  using Options = WideResNetOptions;
  explicit WideResNet(const Options& options);

 protected:
  int stages() const override { return 2 + static_cast<int>(blocks_.size()); }
  at::Tensor run_stage(int stage, const at::Tensor& maps, const NormPass& pass) const override;

 private:
  struct Block {
    BatchNorm norm1;
    Convolution convolution1;
    BatchNorm norm2;
    Convolution convolution2;
    /// Where the number of channels changes; it sees the activated input, as the branch does.
    std::optional<Convolution> shortcut;

    at::Tensor forward(const at::Tensor& input, const NormPass& pass) const;
  };

  static Block make_block(LayerBuilder& build, const std::string& name, std::int64_t in,
                          std::int64_t out, std::int64_t stride);

  Convolution stem_;
  std::vector<Block> blocks_;
  BatchNorm last_norm_;
};

}  // namespace gala
