#pragma once
#include <ATen/ATen.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gala/select/selector.h"
#include "gala/tensor/arena.h"
#include "gala/tensor/state_archive.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {

/// A proposal with sums of the test's own, over layers "a", "b", ... of one tensor each.
class ProposalMaker {
 public:
  explicit ProposalMaker(std::vector<LayerSums> sums, std::vector<at::Tensor> gradients = {},
                         std::vector<at::Tensor> values = {})
      : sums_(std::move(sums)), values_(named(sums_.size(), std::move(values))), arena_(values_) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      layers_.layers.push_back({values_[i].name, {i}, values_[i].tensor.numel()});
    }
    gradients_.tensors = std::move(gradients);
    gradients_.tensors.resize(sums_.size());
  }

  Proposal at_step(std::int64_t window_step, double learning_rate = 1e-3) {
    pointers_ = gradients_.pointers();
    return {layers_,   sums_,      {window_step, window_step}, learning_rate, arena_.layout(),
            pointers_, *workspace_};
  }
  /// Another workspace than LibTorch's.
  void work_in(std::unique_ptr<Workspace> workspace) { workspace_ = std::move(workspace); }
  const ParameterArena& arena() const { return arena_; }
  const LayerPartition& layers() const { return layers_; }
  Gradients& gradients() { return gradients_; }

 private:
  static std::vector<NamedTensor> named(std::size_t count, std::vector<at::Tensor> values) {
    std::vector<NamedTensor> result;
    for (std::size_t i = 0; i < count; ++i) {
      result.push_back({std::string(1, static_cast<char>('a' + i)),
                        i < values.size() ? values[i] : at::ones({2, 3})});
    }
    return result;
  }

  std::vector<LayerSums> sums_;
  std::vector<NamedTensor> values_;
  ParameterArena arena_;
  LayerPartition layers_;
  Gradients gradients_;
  std::vector<const float*> pointers_;
  std::unique_ptr<Workspace> workspace_ = std::make_unique<TorchWorkspace>(at::kCPU);
};

/// Sums of a layer whose update has norm `u` and whose displacement has norm `t` at angle `beta`.
inline LayerSums layer_sums(double u, double t = 0, double beta = 0) {
  return {u * u, u * t * std::cos(beta), t * t, 0, 0, 6};
}

}  // namespace gala
