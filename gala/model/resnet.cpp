#include "gala/model/resnet.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "gala/model/cuda_pool.h"

namespace gala {
namespace {

ResidualBlock basic_block(LayerBuilder& build, const std::string& name, std::int64_t in,
                          std::int64_t width, std::int64_t stride) {
  ResidualBlock block;
  block.branch.push_back(
      build.convolution_norm(name + ".conv1", name + ".bn1", {in, width, 3, stride}));
  block.branch.push_back(build.convolution_norm(name + ".conv2", name + ".bn2", {width, width, 3}));
  return block;
}

ResidualBlock bottleneck_block(LayerBuilder& build, const std::string& name, std::int64_t in,
                               std::int64_t width, std::int64_t stride, BottleneckStride place) {
  const bool first = place == BottleneckStride::kFirst;
  ResidualBlock block;
  block.branch.push_back(
      build.convolution_norm(name + ".conv1", name + ".bn1", {in, width, 1, first ? stride : 1}));
  block.branch.push_back(build.convolution_norm(name + ".conv2", name + ".bn2",
                                                {width, width, 3, first ? 1 : stride}));
  block.branch.push_back(
      build.convolution_norm(name + ".conv3", name + ".bn3", {width, 4 * width, 1}));
  return block;
}

at::Tensor pool(const at::Tensor& maps) {
  if (at::Tensor pooled = cuda_pool(maps); pooled.defined()) return pooled;
  return at::max_pool2d(maps, at::IntArrayRef{3, 3}, at::IntArrayRef{2, 2}, at::IntArrayRef{1, 1});
}

}  // namespace

ResNet::ResNet(Spec spec, std::int64_t classes, const Layout& layout)
    : ChainModel(std::move(spec), classes, Preprocessing::imagenet()) {
  check_norm_epsilon(layout.norm_epsilon);
  LayerBuilder build(parameters_, buffers_, layout.norm_epsilon);
  std::int64_t channels = 64;
  stem_ = build.convolution_norm("conv1", "bn1", {3, channels, 7, 2});
  for (int stage = 0; stage < 4; ++stage) {
    build.begin_block(stage + 1);
    const std::int64_t width = std::int64_t{64} << stage;
    const std::int64_t out = layout.bottleneck ? 4 * width : width;
    for (std::int64_t i = 0; i < layout.blocks[stage]; ++i) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, i);
      build.begin_stage();
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      ResidualBlock block =
          layout.bottleneck ? bottleneck_block(build, name, channels, width, stride, layout.stride)
                            : basic_block(build, name, channels, width, stride);
      if (stride != 1 || channels != out) {
        block.shortcut = build.convolution_norm(name + ".downsample.0", name + ".downsample.1",
                                                {channels, out, 1, stride});
      }
      blocks_.push_back(std::move(block));
      channels = out;
    }
  }
  build.begin_block(0);
  build.begin_stage();
  head_ = build.linear("fc", channels, classes);
}

at::Tensor ResNet::run_stage(int stage, const at::Tensor& maps, const NormPass& pass) const {
  if (stage > 0) return blocks_[static_cast<std::size_t>(stage) - 1].forward(maps, pass);
  return pool(stem_.forward(maps, pass, {.relu = true}));
}

ResNet18::ResNet18(const Options& options)
    : ResNet(options_to_spec("resnet18", options), options.classes,
             {{2, 2, 2, 2}, false, BottleneckStride::kSecond, options.norm_epsilon}) {}

ResNet34::ResNet34(const Options& options)
    : ResNet(options_to_spec("resnet34", options), options.classes,
             {{3, 4, 6, 3}, false, BottleneckStride::kSecond, options.norm_epsilon}) {}

ResNet50::ResNet50(const Options& options)
    : ResNet(options_to_spec("resnet50", options), options.classes,
             {{3, 4, 6, 3}, true, options.stride, options.norm_epsilon}) {}

}  // namespace gala
