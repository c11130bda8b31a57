#include "gala/model/resnext.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace gala {
namespace {

void check_size(std::string_view name, std::int64_t value) {
  if (value < 1 || value > 1024) {
    fail<ConfigError>("model resnext29: {} must be from 1 to 1024, not {}", name, value);
  }
}

const ResNextOptions& checked(const ResNextOptions& options) {
  check_size("cardinality", options.cardinality);
  check_size("base_width", options.base_width);
  return options;
}

ResidualBlock make_block(LayerBuilder& build, const std::string& name, std::int64_t in,
                         std::int64_t width, std::int64_t out, std::int64_t stride,
                         std::int64_t groups) {
  ResidualBlock block;
  block.branch.push_back(
      build.convolution_norm(name + ".conv_reduce", name + ".bn_reduce", {in, width, 1}));
  block.branch.push_back(
      build.convolution_norm(name + ".conv_conv", name + ".bn", {width, width, 3, stride, groups}));
  block.branch.push_back(
      build.convolution_norm(name + ".conv_expand", name + ".bn_expand", {width, out, 1}));
  if (stride != 1 || in != out) {
    block.shortcut = build.convolution_norm(name + ".downsample.0", name + ".downsample.1",
                                            {in, out, 1, stride});
  }
  return block;
}

}  // namespace

ResNext29::ResNext29(const Options& options)
    : ChainModel(options_to_spec("resnext29", checked(options)), options.classes,
                 Preprocessing{.mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}, .size = 32}) {
  check_norm_epsilon(options.norm_epsilon);
  LayerBuilder build(parameters_, buffers_, options.norm_epsilon);
  std::int64_t channels = 64;
  stem_ = build.convolution_norm("conv_1_3x3", "bn_1", {3, channels, 3});
  for (int stage = 0; stage < 3; ++stage) {
    build.begin_block(stage + 1);
    // base_width counts the channels of a group where a stage has 64 planes.
    const std::int64_t width = (options.base_width << stage) * options.cardinality;
    const std::int64_t out = std::int64_t{256} << stage;
    for (std::int64_t i = 0; i < 3; ++i) {
      const std::string name = fmt::format("stage_{}.{}", stage + 1, i);
      build.begin_stage();
      blocks_.push_back(make_block(build, name, channels, width, out, stage > 0 && i == 0 ? 2 : 1,
                                   options.cardinality));
      channels = out;
    }
  }
  build.begin_block(0);
  build.begin_stage();
  head_ = build.linear("classifier", channels, options.classes);
}

at::Tensor ResNext29::run_stage(int stage, const at::Tensor& maps, const NormPass& pass) const {
  if (stage > 0) return blocks_[static_cast<std::size_t>(stage) - 1].forward(maps, pass);
  return stem_.forward(maps, pass, {.relu = true});
}

}  // namespace gala
