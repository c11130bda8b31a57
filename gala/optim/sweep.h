#pragma once
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "gala/optim/optimizer.h"

namespace gala {

// The passes over the arena that every optimizer shares. A Rule is a small value with the numbers of
// one step:
//
//   static constexpr int kMoments;
//   template <class T> void advance(const T& gradient, const T& value, T* moments) const;
//   template <class T> T update(const T& gradient, const T& value, const T* moments) const;
//
// T is float in the kernel and at::Tensor in the plain pass, so that a formula stands once. `advance`
// makes the new moments, `update` the displacement of the parameter from the new moments.

/// A piece of one tensor, small enough to share the work between threads and always cut the same
/// way: sums are the same bits at any number of threads.
struct SweepChunk {
  std::size_t layer;
  std::size_t tensor;
  std::int64_t offset;  ///< within the tensor
  std::int64_t size;
};

std::vector<SweepChunk> make_chunks(const ParameterArena& arena, const LayerPartition& layers);

/// One moment buffer for each moment of a rule.
template <class Rule>
using MomentBuffers = std::array<at::Tensor, Rule::kMoments>;

/// What a sweep reads and writes.
template <class Rule>
struct SweepContext {
  const Gradients& gradients;
  const ParameterArena& arena;
  const LayerPartition& layers;
  std::span<const Rule> rules;  ///< one for each layer
  MomentBuffers<Rule>& moments;
  bool commit;  ///< measure: store the new moments; apply: they are not stored yet
};

namespace detail {

/// Lanes of independent sums: enough to hide the latency of an addition and to fill any vector.
constexpr int kLanes = 8;

struct LaneSums {
  double update_sq[kLanes] = {}, update_dot_shift[kLanes] = {}, shift_sq[kLanes] = {},
         gradient_sq[kLanes] = {}, value_sq[kLanes] = {};

  static double total(const double (&lanes)[kLanes]) {
    double sum = 0;
    for (double lane : lanes) sum += lane;
    return sum;
  }
  LayerSums total() const {
    return {total(update_sq),   total(update_dot_shift), total(shift_sq),
            total(gradient_sq), total(value_sq),         0};
  }
};

inline const float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

template <class Rule>
LayerSums measure_chunk(const SweepContext<Rule>& context, const SweepChunk& chunk,
                        const float* shift_data, bool difference) {
  const std::int64_t begin = context.arena.entries()[chunk.tensor].range.begin + chunk.offset;
  const float* gradient = data_or_null(context.gradients.tensors[chunk.tensor]);
  if (gradient) gradient += chunk.offset;
  const float* value = context.arena.values().template const_data_ptr<float>() + begin;
  const float* shift = shift_data + begin;
  std::array<float*, Rule::kMoments> moment{};
  for (int k = 0; k < Rule::kMoments; ++k) {
    moment[k] = context.moments[k].template mutable_data_ptr<float>() + begin;
  }
  const Rule rule = context.rules[chunk.layer];
  LaneSums sums;
  for (std::int64_t base = 0; base < chunk.size; base += kLanes) {
    const int width = static_cast<int>(std::min<std::int64_t>(kLanes, chunk.size - base));
    for (int lane = 0; lane < width; ++lane) {
      const std::int64_t i = base + lane;
      const float g = gradient ? gradient[i] : 0.0F;
      float fresh[Rule::kMoments + 1];
      for (int k = 0; k < Rule::kMoments; ++k) fresh[k] = moment[k][i];
      rule.advance(g, value[i], fresh);
      const double u = rule.update(g, value[i], fresh);
      if (context.commit) {
        for (int k = 0; k < Rule::kMoments; ++k) moment[k][i] = fresh[k];
      }
      const double td = difference ? value[i] - shift[i] : shift[i];
      sums.update_sq[lane] += u * u;
      sums.update_dot_shift[lane] += u * td;
      sums.shift_sq[lane] += td * td;
      sums.gradient_sq[lane] += static_cast<double>(g) * g;
      sums.value_sq[lane] += static_cast<double>(value[i]) * value[i];
    }
  }
  return sums.total();
}

template <class Rule>
void apply_chunk(const SweepContext<Rule>& context, const SweepChunk& chunk, float weight,
                 float* value_data, float* shift_data, float* recent_data) {
  const std::int64_t begin = context.arena.entries()[chunk.tensor].range.begin + chunk.offset;
  const float* gradient = data_or_null(context.gradients.tensors[chunk.tensor]);
  if (gradient) gradient += chunk.offset;
  float* value = value_data + begin;
  std::array<float*, Rule::kMoments> moment{};
  for (int k = 0; k < Rule::kMoments; ++k) {
    moment[k] = context.moments[k].template mutable_data_ptr<float>() + begin;
  }
  const Rule rule = context.rules[chunk.layer];
  for (std::int64_t i = 0; i < chunk.size; ++i) {
    const float g = gradient ? gradient[i] : 0.0F;
    float fresh[Rule::kMoments + 1];
    for (int k = 0; k < Rule::kMoments; ++k) fresh[k] = moment[k][i];
    if (context.commit) {
      rule.advance(g, value[i], fresh);
      for (int k = 0; k < Rule::kMoments; ++k) moment[k][i] = fresh[k];
    }
    const float delta = weight * rule.update(g, value[i], fresh);
    value[i] += delta;
    if (shift_data) shift_data[begin + i] += delta;
    if (recent_data) recent_data[begin + i] += delta;
  }
}

}  // namespace detail

/// The one pass, as a threaded CPU kernel.
template <class Rule>
std::vector<LayerSums> measure_on_cpu(const SweepContext<Rule>& context,
                                      std::span<const SweepChunk> chunks,
                                      const Displacement& displacement) {
  std::vector<LayerSums> parts(chunks.size());
  const float* shift = displacement.buffer().const_data_ptr<float>();
  const bool difference = displacement.form() == DisplacementForm::kDifference;
  at::parallel_for(0, static_cast<std::int64_t>(chunks.size()), 1,
                   [&](std::int64_t from, std::int64_t to) {
                     for (std::int64_t i = from; i < to; ++i) {
                       parts[i] = detail::measure_chunk(context, chunks[i], shift, difference);
                     }
                   });
  std::vector<LayerSums> sums(context.layers.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    LayerSums& sum = sums[chunks[i].layer];
    sum.update_sq += parts[i].update_sq;
    sum.update_dot_shift += parts[i].update_dot_shift;
    sum.shift_sq += parts[i].shift_sq;
    sum.gradient_sq += parts[i].gradient_sq;
    sum.value_sq += parts[i].value_sq;
  }
  for (std::size_t l = 0; l < sums.size(); ++l) sums[l].count = context.layers[l].count;
  return sums;
}

template <class Rule>
void apply_on_cpu(const SweepContext<Rule>& context, std::span<const SweepChunk> chunks,
                  const Displacement& displacement, std::span<const double> weights) {
  float* value = context.arena.values().template mutable_data_ptr<float>();
  const bool sum = displacement.form() == DisplacementForm::kSum;
  float* shift = sum ? displacement.buffer().mutable_data_ptr<float>() : nullptr;
  float* recent = sum && displacement.recent().defined()
                      ? displacement.recent().mutable_data_ptr<float>()
                      : nullptr;
  at::parallel_for(0, static_cast<std::int64_t>(chunks.size()), 1,
                   [&](std::int64_t from, std::int64_t to) {
                     for (std::int64_t i = from; i < to; ++i) {
                       const auto weight = static_cast<float>(weights[chunks[i].layer]);
                       if (weight == 0) continue;
                       detail::apply_chunk(context, chunks[i], weight, value, shift, recent);
                     }
                   });
}

/// The same pass in LibTorch operations, for any device; the kernels are tested against it.
template <class Rule>
std::vector<LayerSums> measure_plain(const SweepContext<Rule>& context,
                                     const Displacement& displacement) {
  std::vector<at::Tensor> rows;
  const auto dot = [](const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) * b.to(at::kDouble)).sum();
  };
  for (std::size_t l = 0; l < context.layers.size(); ++l) {
    at::Tensor row;
    for (const std::size_t t : context.layers[l].tensors) {
      const at::Tensor value = context.arena.view(context.arena.values(), t);
      const at::Tensor& given = context.gradients.tensors[t];
      const at::Tensor gradient = given.defined() ? given : at::zeros_like(value);
      std::array<at::Tensor, Rule::kMoments + 1> fresh;
      for (int k = 0; k < Rule::kMoments; ++k) {
        fresh[k] = context.arena.view(context.moments[k], t).clone();
      }
      context.rules[l].advance(gradient, value, fresh.data());
      const at::Tensor u = context.rules[l].update(gradient, value, fresh.data());
      for (int k = 0; context.commit && k < Rule::kMoments; ++k) {
        context.arena.view(context.moments[k], t).copy_(fresh[k]);
      }
      const at::Tensor shift = displacement.shift(context.arena, t);
      const at::Tensor part = at::stack({dot(u, u), dot(u, shift), dot(shift, shift),
                                         dot(gradient, gradient), dot(value, value)});
      row = row.defined() ? row + part : part;
    }
    rows.push_back(row);
  }
  const at::Tensor table = at::stack(rows).to(at::kCPU);  // the one copy from the device
  const double* numbers = table.const_data_ptr<double>();
  std::vector<LayerSums> sums;
  for (std::size_t l = 0; l < context.layers.size(); ++l, numbers += 5) {
    sums.push_back(
        {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], context.layers[l].count});
  }
  return sums;
}

template <class Rule>
void apply_plain(const SweepContext<Rule>& context, Displacement& displacement,
                 std::span<const double> weights) {
  for (std::size_t l = 0; l < context.layers.size(); ++l) {
    if (weights[l] == 0) continue;
    for (const std::size_t t : context.layers[l].tensors) {
      at::Tensor value = context.arena.view(context.arena.values(), t);
      const at::Tensor& given = context.gradients.tensors[t];
      const at::Tensor gradient = given.defined() ? given : at::zeros_like(value);
      std::array<at::Tensor, Rule::kMoments + 1> fresh;
      for (int k = 0; k < Rule::kMoments; ++k) {
        fresh[k] = context.arena.view(context.moments[k], t).clone();
      }
      if (context.commit) {
        context.rules[l].advance(gradient, value, fresh.data());
        for (int k = 0; k < Rule::kMoments; ++k) {
          context.arena.view(context.moments[k], t).copy_(fresh[k]);
        }
      }
      const at::Tensor delta =
          static_cast<float>(weights[l]) * context.rules[l].update(gradient, value, fresh.data());
      value.add_(delta);
      displacement.add(context.arena, t, delta);
    }
  }
}

/// The same for all layers at once, where they follow one rule with one weight: a handful of
/// operations over the whole buffer, whatever the number of tensors.
template <class Rule>
void apply_whole(const SweepContext<Rule>& context, const Displacement& displacement,
                 float weight) {
  const at::Tensor gradient = context.arena.make_buffer();
  std::vector<at::Tensor> given, places;
  for (std::size_t t = 0; t < context.gradients.tensors.size(); ++t) {
    if (!context.gradients.tensors[t].defined()) continue;
    given.push_back(context.gradients.tensors[t]);
    places.push_back(context.arena.view(gradient, t));
  }
  if (!given.empty()) at::_foreach_copy_(places, given);
  const at::Tensor& value = context.arena.values();
  std::array<at::Tensor, Rule::kMoments + 1> fresh;
  for (int k = 0; k < Rule::kMoments; ++k) fresh[k] = context.moments[k];
  if (context.commit) {
    context.rules[0].advance(gradient, value, fresh.data());
    for (int k = 0; k < Rule::kMoments; ++k) context.moments[k].copy_(fresh[k]);
  }
  const at::Tensor delta = weight * context.rules[0].update(gradient, value, fresh.data());
  value.add_(delta);
  if (displacement.form() == DisplacementForm::kSum) {
    displacement.buffer().add_(delta);
    if (displacement.recent().defined()) displacement.recent().add_(delta);
  }
}

}  // namespace gala
