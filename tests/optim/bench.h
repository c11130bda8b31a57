#pragma once
#include <ATen/ATen.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gala/optim/optimizer.h"

namespace gala {

/// Tensors in several orders: one of channels-last order, one of several pieces of work, and small
/// ones that share a layer.
inline std::vector<NamedTensor> bench_parameters(std::uint64_t seed) {
  at::manual_seed(seed);
  return {{"conv.weight", at::randn({8, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast)},
          {"norm.weight", at::ones({8})},
          {"norm.bias", at::zeros({8})},
          {"wide.weight", at::randn({151, 223}) * 0.1},
          {"head.weight", at::randn({8, 5}).t()},
          {"head.bias", at::randn({5})}};
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

/// An arena with everything an optimizer needs around it.
struct Bench {
  ParameterArena arena;
  LayerPartition layers;
  Displacement displacement;
  std::unique_ptr<Optimizer> optimizer;

  explicit Bench(const std::string& spec, DisplacementForm form = DisplacementForm::kSum,
                 Anchor anchor = Anchor::kWindow)
      : arena(bench_parameters(21)),
        layers(bench_layers(arena)),
        displacement(arena, form, anchor),
        optimizer(make_optimizer(Spec::parse(spec))) {
    optimizer->attach(arena, layers, /*sum_values=*/true);
  }

  /// The gradients of step `step`: the same for every bench, some tiny, some large, with a drift.
  Gradients gradients(int step) const {
    at::manual_seed(1000 + static_cast<std::uint64_t>(step));
    Gradients result;
    for (std::size_t i = 0; i < arena.entries().size(); ++i) {
      const at::Tensor values =
          (at::randn(arena.leaf(i).sizes()) + 0.5) * (i % 2 == 0 ? 1.0 : 1e-3);
      result.tensors.push_back(at::empty_like(arena.leaf(i).detach()).copy_(values));
    }
    return result;
  }

  std::vector<LayerSums> measure(const Gradients& given, float loss = 0) {
    const auto rows = static_cast<std::int64_t>(layers.size());
    const at::Tensor table = at::zeros({rows, kSumColumns}, at::kDouble);
    optimizer->prepare();
    optimizer->measure(given, at::full({}, loss), displacement, table);
    std::vector<LayerSums> sums;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      sums.push_back(read_sums(table.const_data_ptr<double>() + l * kSumColumns, layers[l].count));
    }
    return sums;
  }
  std::vector<LayerSums> step(const Gradients& given, const std::vector<double>& weights) {
    const std::vector<LayerSums> sums = measure(given);
    optimizer->apply(given, displacement, weights);
    return sums;
  }
  std::vector<LayerSums> step(int number, const std::vector<double>& weights = {1, 1, 1, 1}) {
    return step(gradients(number), weights);
  }

  State state() const {
    State result;
    arena.save(arena.values(), "values/", result);
    displacement.save(arena, result);
    optimizer->save(arena, result);
    return result;
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
