#pragma once
// The arithmetic of the passes over the arena, on plain pointers: nothing here knows LibTorch, so
// that cpu_kernels.cpp and cuda_kernels.cu compile alone, each with the flags it needs.
#include <algorithm>
#include <cstdint>

#include "gala/base/compiler.h"
#include "gala/layer/lanes.h"
#include "gala/layer/layer_sums.h"

namespace gala {

/// A piece of one tensor, small enough to share the work between threads and always cut the same
/// way: sums are the same bits at any number of threads.
struct SweepChunk {
  std::int32_t layer;
  std::int32_t tensor;
  std::int64_t begin;   ///< in the arena
  std::int64_t offset;  ///< in the tensor
  std::int64_t size;
};

/// Where the displacement TD of every parameter lies.
struct DisplacementView {
  float* shift = nullptr;   ///< TD, or the parameters at the anchor
  float* recent = nullptr;  ///< the part of TD since the last window opened, or null
  bool difference = false;  ///< TD is values - shift, and there is nothing to add an update to
  bool proposed = false;  ///< TD takes in the whole update of every layer, also of one of weight 0
  float keep = 1;         ///< with `proposed`: TD becomes keep · TD + update
};

/// What a pass reads and writes. All pointers lead to host memory, or all to device memory.
template <class Rule>
struct SweepView {
  const Rule* rules = nullptr;  ///< one for each layer
  float* values = nullptr;
  float* moments[Rule::kMoments] = {};
  DisplacementView displacement;
  bool commit = false;      ///< measure: store the new moments; apply: they are not stored yet
  bool sum_values = false;  ///< sum up |θ|² too
};

/// The sums over one chunk, without the gradient's. `gradient` may be null and stands for zeros then.
template <class Rule>
[[gnu::noinline]] void measure_chunk(const SweepView<Rule>& view, const SweepChunk& chunk,
                                     const float* gradient, double (&row)[kSumColumns]);
/// Moves the parameters of one chunk, and their TD, by weight · update. At a weight of 0 only a TD of
/// proposed updates changes.
template <class Rule>
[[gnu::noinline]] void apply_chunk(const SweepView<Rule>& view, const SweepChunk& chunk,
                                   const float* gradient, float weight);

/// For rules whose kernels are compiled in cpu_kernels.cpp.
#define GALA_EXTERN_SWEEP(RULE)                                                               \
  extern template void measure_chunk(const SweepView<RULE>&, const SweepChunk&, const float*, \
                                     double(&)[kSumColumns]);                                 \
  extern template void apply_chunk(const SweepView<RULE>&, const SweepChunk&, const float*, float)

namespace detail {

/// Elements worked on at a time: their updates stay in the first-level cache.
constexpr std::int64_t kBlock = 512;
constexpr float kZeros[kBlock] = {};
/// The update of `size` elements from `begin` on, into `update`; the moments move where asked.
template <bool kStore, bool kAdvance, class Rule>
GALA_INLINE void make_updates(const SweepView<Rule>& view, const Rule& rule, std::int64_t begin,
                              const float* gradient, std::int64_t size, float* update) {
  const float* values = rule.reads_values() ? view.values + begin : kZeros;
  float* moments[Rule::kMoments];
  for (int k = 0; k < Rule::kMoments; ++k) moments[k] = view.moments[k] + begin;
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < size; ++i) {
    float fresh[Rule::kMoments];
    for (int k = 0; k < Rule::kMoments; ++k) fresh[k] = moments[k][i];
    if constexpr (kAdvance) rule.advance(gradient[i], values[i], fresh);
    update[i] = rule.update(gradient[i], values[i], fresh);
    if constexpr (kStore) {
      for (int k = 0; k < Rule::kMoments; ++k) moments[k][i] = fresh[k];
    }
  }
}

template <class Rule>
GALA_INLINE void measure_body(const SweepView<Rule>& view, const SweepChunk& chunk,
                              const float* gradient, double (&row)[kSumColumns]) {
  const Rule rule = view.rules[chunk.layer];
  alignas(64) float update[kBlock], difference[kBlock];
  Lanes update_sq, update_dot_shift, shift_sq, value_sq;
  for (std::int64_t from = 0; from < chunk.size; from += kBlock) {
    const std::int64_t size = std::min(kBlock, chunk.size - from), begin = chunk.begin + from;
    const float* g = gradient ? gradient + from : kZeros;
    if (view.commit) {
      make_updates<true, true>(view, rule, begin, g, size, update);
    } else {
      make_updates<false, true>(view, rule, begin, g, size, update);
    }
    const float* shift = view.displacement.shift + begin;
    if (view.displacement.difference) {
      for (std::int64_t i = 0; i < size; ++i) difference[i] = view.values[begin + i] - shift[i];
      shift = difference;
    }
    update_sq.add(update, update, size);
    update_dot_shift.add(update, shift, size);
    shift_sq.add(shift, shift, size);
    if (view.sum_values) value_sq.add(view.values + begin, view.values + begin, size);
  }
  row[kUpdateSq] = update_sq.total();
  row[kUpdateDotShift] = update_dot_shift.total();
  row[kShiftSq] = shift_sq.total();
  row[kValueSq] = value_sq.total();
}

template <class Rule>
GALA_INLINE void apply_body(const SweepView<Rule>& view, const SweepChunk& chunk,
                            const float* gradient, float weight) {
  const Rule rule = view.rules[chunk.layer];
  alignas(64) float update[kBlock];
  for (std::int64_t from = 0; from < chunk.size; from += kBlock) {
    const std::int64_t size = std::min(kBlock, chunk.size - from), begin = chunk.begin + from;
    const float* g = gradient ? gradient + from : kZeros;
    if (view.commit && weight != 0) {
      make_updates<true, true>(view, rule, begin, g, size, update);
    } else if (view.commit) {
      make_updates<false, true>(view, rule, begin, g, size, update);
    } else {
      make_updates<false, false>(view, rule, begin, g, size, update);
    }
    const DisplacementView& displacement = view.displacement;
    float* const all_sums[] = {displacement.difference ? nullptr : displacement.shift,
                               displacement.recent};
    for (float* sums : all_sums) {
      if (!sums || !displacement.proposed) continue;
      sums += begin;
      for (std::int64_t i = 0; i < size; ++i) sums[i] = displacement.keep * sums[i] + update[i];
    }
    if (weight == 0) continue;
    for (std::int64_t i = 0; i < size; ++i) update[i] *= weight;
    float* values = view.values + begin;
    for (std::int64_t i = 0; i < size; ++i) values[i] += update[i];
    for (float* sums : all_sums) {
      if (!sums || displacement.proposed) continue;
      for (std::int64_t i = 0; i < size; ++i) sums[begin + i] += update[i];
    }
  }
}

#if GALA_CPU_LEVELS
// The same source for several instruction sets, chosen when it runs. None of them may fuse products
// and sums, so all give the same bits.
template <class Rule>
__attribute__((target("avx512f,avx512vl,avx512dq,prefer-vector-width=512"))) void measure_avx512(
    const SweepView<Rule>& view, const SweepChunk& chunk, const float* gradient,
    double (&row)[kSumColumns]) {
  measure_body(view, chunk, gradient, row);
}
template <class Rule>
__attribute__((target("avx2"))) void measure_avx2(const SweepView<Rule>& view,
                                                  const SweepChunk& chunk, const float* gradient,
                                                  double (&row)[kSumColumns]) {
  measure_body(view, chunk, gradient, row);
}
template <class Rule>
__attribute__((target("avx2"))) void apply_avx2(const SweepView<Rule>& view,
                                                const SweepChunk& chunk, const float* gradient,
                                                float weight) {
  apply_body(view, chunk, gradient, weight);
}
#endif

}  // namespace detail

template <class Rule>
void measure_chunk(const SweepView<Rule>& view, const SweepChunk& chunk, const float* gradient,
                   double (&row)[kSumColumns]) {
#if GALA_CPU_LEVELS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return detail::measure_avx512(view, chunk, gradient, row);
  }
  if (__builtin_cpu_supports("avx2")) return detail::measure_avx2(view, chunk, gradient, row);
#endif
  detail::measure_body(view, chunk, gradient, row);
}

template <class Rule>
void apply_chunk(const SweepView<Rule>& view, const SweepChunk& chunk, const float* gradient,
                 float weight) {
#if GALA_CPU_LEVELS
  if (__builtin_cpu_supports("avx2")) return detail::apply_avx2(view, chunk, gradient, weight);
#endif
  detail::apply_body(view, chunk, gradient, weight);
}

}  // namespace gala
