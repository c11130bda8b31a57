#include "gala/model/layers.h"

#include <ATen/ATen.h>

#include "gala/base/error.h"

namespace gala {

at::Tensor Convolution::forward(const at::Tensor& input) const {
  return at::conv2d(input, weight->value, {}, at::IntArrayRef{stride, stride},
                    at::IntArrayRef{padding, padding}, at::IntArrayRef{1, 1}, groups);
}

at::Tensor BatchNorm::forward(const at::Tensor& input, const NormPass& pass,
                              const NormEnd& end) const {
  return batch_norm(input, scale->value, shift->value, running_mean->value, running_var->value,
                    pass.mode, epsilon, pass.update_statistics, end, pass.counted,
                    {running_mean->source, running_var->source, pass.spread, pass.used.get(),
                     running_mean->by_class, running_var->by_class, pass.labels},
                    pass.processes);
}

at::Tensor Linear::forward(const at::Tensor& input) const {
  return at::linear(input, weight->value, bias->value);
}

at::Tensor ConvolutionNorm::forward(const at::Tensor& input, const NormPass& pass,
                                    const NormEnd& end) const {
  return norm.forward(convolution.forward(input), pass, end);
}

at::Tensor ResidualBlock::forward(const at::Tensor& input, const NormPass& pass) const {
  at::Tensor result = input;
  for (std::size_t i = 0; i + 1 < branch.size(); ++i) {
    result = branch[i].forward(result, pass, {.relu = true});
  }
  const at::Tensor added = shortcut ? shortcut->forward(input, pass) : input;
  return branch.back().forward(result, pass, {.relu = true, .added = added});
}

Parameter* LayerBuilder::add(const std::string& module, const char* name, ModuleKind kind,
                             at::IntArrayRef sizes) {
  // Asked before the memory is: it would be given, and the machine brought to a halt by its use.
  constexpr std::int64_t kMost = 1'000'000'000;
  std::int64_t count = 1;
  bool countless = false;
  for (const std::int64_t size : sizes) countless |= __builtin_mul_overflow(count, size, &count);
  for (const Parameter& parameter : parameters_) {
    countless |= __builtin_add_overflow(count, parameter.value.numel(), &count);
  }
  if (countless || count > kMost) {
    fail<ConfigError>("the network would have {} parameters up to {} (at most {} are accepted)",
                      countless ? "more than 2^63" : std::to_string(count), module, kMost);
  }
  parameters_.push_back(
      {module + '.' + name, module, kind, block_, at::zeros(sizes, at::kFloat), stage_});
  return &parameters_.back();
}

Convolution LayerBuilder::convolution(const std::string& module, const ConvolutionShape& shape) {
  Parameter* weight = add(module, "weight", ModuleKind::kConvolution,
                          {shape.out, shape.in / shape.groups, shape.kernel, shape.kernel});
  return {weight, shape.stride, shape.kernel / 2, shape.groups};
}

BatchNorm LayerBuilder::norm(const std::string& module, std::int64_t channels) {
  BatchNorm layer;
  layer.epsilon = norm_epsilon_;
  layer.scale = add(module, "weight", ModuleKind::kNorm, {channels});
  layer.shift = add(module, "bias", ModuleKind::kNorm, {channels});
  buffers_.push_back({module + ".running_mean", at::zeros({channels}, at::kFloat)});
  layer.running_mean = &buffers_.back();
  buffers_.push_back({module + ".running_var", at::ones({channels}, at::kFloat)});
  layer.running_var = &buffers_.back();
  return layer;
}

ConvolutionNorm LayerBuilder::convolution_norm(const std::string& convolution_module,
                                               const std::string& norm_module,
                                               const ConvolutionShape& shape) {
  const Convolution layer = convolution(convolution_module, shape);
  return {layer, norm(norm_module, shape.out)};
}

Linear LayerBuilder::linear(const std::string& module, std::int64_t in, std::int64_t out) {
  Parameter* weight = add(module, "weight", ModuleKind::kLinear, {out, in});
  return {weight, add(module, "bias", ModuleKind::kLinear, {out})};
}

}  // namespace gala
