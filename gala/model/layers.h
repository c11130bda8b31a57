#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "gala/model/model.h"
#include "gala/model/norm.h"

namespace gala {

// The pieces networks are made of. Each holds pointers to slots of its model, never tensors: what
// lies in the slot when `forward` is called is used.

/// A two-dimensional convolution without bias.
struct Convolution {
  Parameter* weight = nullptr;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;

  at::Tensor forward(const at::Tensor& input) const;
};

/// Batch normalisation over [N, C, H, W].
struct BatchNorm {
  Parameter* scale = nullptr;
  Parameter* shift = nullptr;
  Buffer* running_mean = nullptr;
  Buffer* running_var = nullptr;
  double epsilon = 1e-5;

  at::Tensor forward(const at::Tensor& input, const NormPass& pass, const NormEnd& end = {}) const;
};

/// x · weightᵀ + bias.
struct Linear {
  Parameter* weight = nullptr;
  Parameter* bias = nullptr;

  at::Tensor forward(const at::Tensor& input) const;
};

/// A convolution and the norm behind it.
struct ConvolutionNorm {
  Convolution convolution;
  BatchNorm norm;

  at::Tensor forward(const at::Tensor& input, const NormPass& pass, const NormEnd& end = {}) const;
};

/// relu(branch(x) + shortcut(x)), with a relu between the steps of the branch; the shortcut is the
/// input itself where none is given.
struct ResidualBlock {
  std::vector<ConvolutionNorm> branch;
  std::optional<ConvolutionNorm> shortcut;

  at::Tensor forward(const at::Tensor& input, const NormPass& pass) const;
};

/// The size of a square convolution.
struct ConvolutionShape {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
};

/// Appends layers, in the order of the calls, to a model's parameters and buffers. Maps keep their
/// size where the stride is 1: padding is kernel / 2.
class LayerBuilder {
 public:
  LayerBuilder(std::deque<Parameter>& parameters, std::deque<Buffer>& buffers, double norm_epsilon)
      : parameters_(parameters), buffers_(buffers), norm_epsilon_(norm_epsilon) {}

  /// The block of what follows; 0 for the head.
  void begin_block(int block) { block_ = block; }
  /// What follows is the next stage of a chain; before the first call it is stage 0.
  void begin_stage() { ++stage_; }

  Convolution convolution(const std::string& module, const ConvolutionShape& shape);
  BatchNorm norm(const std::string& module, std::int64_t channels);
  ConvolutionNorm convolution_norm(const std::string& convolution_module,
                                   const std::string& norm_module, const ConvolutionShape& shape);
  Linear linear(const std::string& module, std::int64_t in, std::int64_t out);

 private:
  Parameter* add(const std::string& module, const char* name, ModuleKind kind,
                 at::IntArrayRef sizes);

  std::deque<Parameter>& parameters_;
  std::deque<Buffer>& buffers_;
  double norm_epsilon_;
  int block_ = 1;
  int stage_ = 0;
};

}  // namespace gala
