#include "gala/model/wide_resnet.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace gala {
namespace {

const WideResNetOptions& checked(const WideResNetOptions& options) {
  if (options.depth < 10 || options.depth > 1000 || (options.depth - 4) % 6 != 0) {
    fail<ConfigError>(
        "model wide_resnet: depth must be 6n + 4 (10, 16, 22, 28, 34, 40, ... up to 1000), not {}",
        options.depth);
  }
  if (options.width < 1 || options.width > 1024) {
    fail<ConfigError>("model wide_resnet: width must be from 1 to 1024, not {}", options.width);
  }
  return options;
}

}  // namespace

WideResNet::WideResNet(const Options& options)
    : ChainModel(options_to_spec("wide_resnet", checked(options)), options.classes,
                 Preprocessing{.size = 32}) {
  check_norm_epsilon(options.norm_epsilon);
  LayerBuilder build(parameters_, buffers_, options.norm_epsilon);
  std::int64_t channels = 16;
  stem_ = build.convolution("conv1", {3, channels, 3});
  for (int stage = 0; stage < 3; ++stage) {
    build.begin_block(stage + 1);
    const std::int64_t out = (std::int64_t{16} << stage) * options.width;
    for (std::int64_t i = 0; i < (options.depth - 4) / 6; ++i) {
      const std::string name = fmt::format("block{}.layer.{}", stage + 1, i);
      build.begin_stage();
      blocks_.push_back(make_block(build, name, channels, out, stage > 0 && i == 0 ? 2 : 1));
      channels = out;
    }
  }
  build.begin_stage();
  last_norm_ = build.norm("bn1", channels);
  build.begin_block(0);
  build.begin_stage();
  head_ = build.linear("fc", channels, options.classes);
}

WideResNet::Block WideResNet::make_block(LayerBuilder& build, const std::string& name,
                                         std::int64_t in, std::int64_t out, std::int64_t stride) {
  Block block;
  block.norm1 = build.norm(name + ".bn1", in);
  block.convolution1 = build.convolution(name + ".conv1", {in, out, 3, stride});
  block.norm2 = build.norm(name + ".bn2", out);
  block.convolution2 = build.convolution(name + ".conv2", {out, out, 3});
  if (in != out) block.shortcut = build.convolution(name + ".convShortcut", {in, out, 1, stride});
  return block;
}

at::Tensor WideResNet::Block::forward(const at::Tensor& input, const NormPass& pass) const {
  const at::Tensor active = norm1.forward(input, pass, {.relu = true});
  at::Tensor result = norm2.forward(convolution1.forward(active), pass, {.relu = true});
  result = convolution2.forward(result);
  return result.add_(shortcut ? shortcut->forward(active) : input);
}

at::Tensor WideResNet::run_stage(int stage, const at::Tensor& maps, const NormPass& pass) const {
  if (stage == 0) return stem_.forward(maps);
  const auto block = static_cast<std::size_t>(stage) - 1;
  if (block < blocks_.size()) return blocks_[block].forward(maps, pass);
  return last_norm_.forward(maps, pass, {.relu = true});
}

}  // namespace gala
