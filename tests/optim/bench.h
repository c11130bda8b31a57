#pragma once
#include <ATen/ATen.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gala/optim/optimizer.h"
#include "gala/step/displacement.h"
#include "gala/tensor/arena.h"
#include "gala/tensor/state_archive.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {

/// Tensors in several orders: one of channels-last order, one of several pieces of work, and small
/// ones that share a layer.
inline std::vector<NamedTensor> bench_parameters(std::uint64_t seed, at::Device device = at::kCPU) {
  at::manual_seed(seed);
  std::vector<NamedTensor> named{
      {"conv.weight", at::randn({8, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast)},
      {"norm.weight", at::ones({8})},
      {"norm.bias", at::zeros({8})},
      {"wide.weight", at::randn({151, 223}) * 0.1},
      {"head.weight", at::randn({8, 5}).t()},
      {"head.bias", at::randn({5})}};
  for (NamedTensor& parameter : named) parameter.tensor = parameter.tensor.to(device);
  return named;
}

inline LayerPartition bench_layers(const ParameterArena& arena) {
  LayerPartition partition{
      {{"conv", {0}, 0}, {"norm", {1, 2}, 0}, {"wide", {3}, 0}, {"head", {4, 5}, 0}}};
  for (Layer& layer : partition.layers) {
    for (const std::size_t tensor : layer.tensors)
      layer.count += arena.entries()[tensor].range.size;
  }
  return partition;
}

/// The share of a sum of proposed updates that stays at a step.
constexpr double kBenchKeep = 0.9;

/// An arena with everything an optimizer needs around it, on any device.
struct Bench {
  ParameterArena arena;
  LayerPartition layers;
  TorchWorkspace workspace;
  Displacement displacement;
  std::unique_ptr<Optimizer> optimizer;

  explicit Bench(const std::string& spec, DisplacementForm form = DisplacementForm::kSum,
                 Anchor anchor = Anchor::kWindow, at::Device device = at::kCPU,
                 bool sum_values = true)
      : arena(bench_parameters(21, device)),
        layers(bench_layers(arena)),
        workspace(arena.values().device()),
        displacement(arena.values().const_data_ptr<float>(), arena.size(), workspace, form, anchor,
                     kBenchKeep),
        optimizer(make_optimizer(spec)) {
    attach(sum_values);
  }
  void attach(bool sum_values) {
    optimizer->attach(
        {arena.layout(), layers, arena.values().mutable_data_ptr<float>(), workspace, sum_values});
  }

  /// The gradients of step `step`, on the host: the same for every bench, some tiny, some large, with a
  /// drift.
  Gradients gradients(int step) const {
    at::manual_seed(1000 + static_cast<std::uint64_t>(step));
    Gradients result;
    for (std::size_t i = 0; i < arena.entries().size(); ++i) {
      const at::Tensor values =
          (at::randn(arena.leaf(i).sizes()) + 0.5) * (i % 2 == 0 ? 1.0 : 1e-3);
      result.tensors.push_back(at::empty_like(arena.leaf(i).detach().cpu()).copy_(values));
    }
    return result;
  }
  /// Copies on the arena's device.
  Gradients moved(const Gradients& given) const {
    Gradients result;
    for (const at::Tensor& gradient : given.tensors) {
      result.tensors.push_back(gradient.defined() ? gradient.to(arena.values().device())
                                                  : at::Tensor());
    }
    return result;
  }

  std::vector<LayerSums> measure(const Gradients& given, float loss = 0) {
    const auto rows = static_cast<std::int64_t>(layers.size());
    const auto options = arena.values().options();
    const at::Tensor table = at::zeros({rows, kSumColumns}, options.dtype(at::kDouble));
    const at::Tensor value = at::full({}, loss, options);
    const Gradients here = moved(given);
    optimizer->prepare();
    optimizer->measure(here.pointers(), value.const_data_ptr<float>(), displacement.view(),
                       table.mutable_data_ptr<double>());
    const at::Tensor host = table.cpu();
    std::vector<LayerSums> sums;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      sums.push_back(read_sums(host.const_data_ptr<double>() + l * kSumColumns, layers[l].count));
    }
    return sums;
  }
  void apply(const Gradients& given, const std::vector<double>& weights) {
    const Gradients here = moved(given);
    optimizer->apply(here.pointers(), displacement.view(), weights);
  }
  std::vector<LayerSums> step(const Gradients& given, const std::vector<double>& weights) {
    const std::vector<LayerSums> sums = measure(given);
    apply(given, weights);
    return sums;
  }
  std::vector<LayerSums> step(int number, const std::vector<double>& weights = {1, 1, 1, 1}) {
    return step(gradients(number), weights);
  }

  /// What the displacement keeps, as a buffer of the arena.
  at::Tensor kept() const { return arena.as_buffer(displacement.buffer()); }
  /// TD of one tensor.
  at::Tensor shift(std::size_t tensor) const {
    const at::Tensor part = arena.view(kept(), tensor);
    return displacement.form() == DisplacementForm::kDifference
               ? arena.view(arena.values(), tensor) - part
               : part;
  }

  State state() {
    State result;
    StateArchive archive(arena, result);
    arena.save(arena.values(), "values/", result);
    displacement.remember(archive);
    optimizer->remember(archive);
    return result;
  }
  void load(const State& state) {
    StateArchive archive(arena, state);
    at::Tensor values = arena.values();
    arena.load(values, "values/", state);
    displacement.remember(archive);
    optimizer->remember(archive);
  }
};

inline bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.contiguous(), right = b.contiguous();
  return left.nbytes() == right.nbytes() &&
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

/// Whether two states hold the same bytes in the tensors whose names contain `part`.
inline bool same_bytes(const State& a, const State& b, const std::string& part = "") {
  bool found = false;
  for (const auto& [name, tensor] : a.tensors) {
    if (name.find(part) == std::string::npos) continue;
    found = true;
    const auto other = b.tensors.find(name);
    if (other == b.tensors.end() || !same_bytes(tensor, other->second)) return false;
  }
  return found && a.tensors.size() == b.tensors.size();
}

inline bool same_bytes(const std::vector<LayerSums>& a, const std::vector<LayerSums>& b) {
  static_assert(sizeof(LayerSums) == 6 * sizeof(double), "compared as bytes: no padding");
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(LayerSums)) == 0;
}

}  // namespace gala
