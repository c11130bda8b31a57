// Compiled without fused products (see CMakeLists.txt): the updates are the CPU's bit for bit, the
// sums differ only in their order, which is fixed here too.
#include <cstring>

#include "gala/base/cuda_check.h"
#include "gala/base/cuda_four.h"
#include "gala/optim/adam_rule.h"
#include "gala/optim/cuda_kernels.h"
#include "gala/optim/sgd_rule.h"

namespace gala {
namespace {

constexpr int kThreads = 512;
constexpr int kVector = Four::kSize;
constexpr std::int32_t kStride = kThreads * kVector;  // what a block's threads take in one go
static_assert(kCudaChunk % kStride == 0);

template <int kCount>
struct Pointers {
  const float* data[kCount];
};

/// Four neighbours; those past `width` are zero.
__device__ Four load(const float* data, std::int64_t at, int width) {
  Four four = {};
  if (!data) return four;
  if (width == kVector && reinterpret_cast<std::uintptr_t>(data + at) % sizeof(float4) == 0) {
    return load_four(data + at);
  }
  for (int i = 0; i < width; ++i) four.x[i] = data[at + i];
  return four;
}

__device__ void store(float* data, std::int64_t at, int width, const Four& four) {
  if (width == kVector) {  // the arena's parts begin on cache lines
    store_four(data + at, four);
  } else {
    for (int i = 0; i < width; ++i) data[at + i] = four.x[i];
  }
}

__device__ double warp_sum(double value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffU, value, offset);
  }
  return value;
}

/// The sums over a block's threads, in thread 0; the order never changes.
template <int kCount>
__device__ void block_sum(double (&sums)[kCount]) {
  __shared__ double warps[kThreads / 32][kCount];
  for (int c = 0; c < kCount; ++c) {
    const double sum = warp_sum(sums[c]);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32][c] = sum;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int c = 0; c < kCount; ++c) {
    sums[c] = 0;
    for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) sums[c] += warps[w][c];
  }
}

/// Whether a chunk can be read in whole vectors. The arena's parts begin on cache lines; gradients
/// are where autograd left them.
__device__ bool is_whole(const SweepChunk& chunk, const float* gradient) {
  return gradient && chunk.size % kVector == 0 &&
         reinterpret_cast<std::uintptr_t>(gradient) % sizeof(float4) == 0;
}

template <class Rule, int kCount>
__global__ void __launch_bounds__(kThreads)
    square_gradients(const __grid_constant__ CudaPass<Rule> pass,
                     const __grid_constant__ Pointers<kCount> gradients) {
  // The way from host memory is long, so it is taken here, where other blocks have work meanwhile.
  for (int l = blockIdx.x; threadIdx.x == 0 && l < pass.layer_count; l += gridDim.x) {
    pass.rules[l] = pass.fresh_rules[l];
  }
  const SweepChunk chunk = pass.chunks[blockIdx.x];
  const float* gradient = gradients.data[chunk.tensor];
  const auto size = static_cast<std::int32_t>(chunk.size);
  double sums[1] = {0};
  if (gradient) {
    gradient += chunk.offset;
    const bool whole = is_whole(chunk, gradient);
#pragma unroll 4
    for (std::int32_t i = threadIdx.x * kVector; i < size; i += kStride) {
      const Four g = whole ? load_four(gradient + i) : load(gradient, i, min(size - i, kVector));
      for (const float x : g.x) sums[0] += static_cast<double>(x) * x;
    }
  }
  block_sum(sums);
  if (threadIdx.x > 0) return;
  pass.parts[blockIdx.x * kSumColumns + kGradientSq] = sums[0];
  if (!isfinite(sums[0])) *pass.broken = 1;
}

/// What a thread adds up: |u|², u·TD, |TD|², |θ|².
struct UpdateSums {
  double values[4] = {0, 0, 0, 0};

  /// Takes in four neighbours and leaves their new moments in `moments`.
  template <bool kSumValues, class Rule>
  __device__ void take(const Rule& rule, bool difference, int width, const Four& g,
                       const Four& value, const Four& shift, Four (&moments)[Rule::kMoments]) {
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      float fresh[Rule::kMoments];
      for (int k = 0; k < Rule::kMoments; ++k) fresh[k] = moments[k].x[j];
      rule.advance(g.x[j], value.x[j], fresh);
      const double u = j < width ? rule.update(g.x[j], value.x[j], fresh) : 0.0F;
      for (int k = 0; k < Rule::kMoments; ++k) moments[k].x[j] = fresh[k];
      const double td = difference ? value.x[j] - shift.x[j] : shift.x[j];
      values[0] += u * u;
      values[1] += u * td;
      values[2] += td * td;
      if constexpr (kSumValues) values[3] += static_cast<double>(value.x[j]) * value.x[j];
    }
  }
};

/// Takes in `kAhead` vectors, all of them loaded before the first is used, and commits their moments.
template <int kAhead, class Rule>
__device__ void take_ahead(const Rule& rule, const float* gradient, const float* shifts,
                           float* const (&all_moments)[Rule::kMoments], std::int32_t begin,
                           UpdateSums& sums) {
  Four g[kAhead], shift[kAhead], moments[kAhead][Rule::kMoments];
#pragma unroll
  for (int a = 0; a < kAhead; ++a) {
    const std::int32_t i = begin + a * kStride;
    g[a] = load_four(gradient + i);
    shift[a] = load_four(shifts + i);
    for (int k = 0; k < Rule::kMoments; ++k) moments[a][k] = load_four(all_moments[k] + i);
  }
#pragma unroll
  for (int a = 0; a < kAhead; ++a) {
    const std::int32_t i = begin + a * kStride;
    sums.take<false>(rule, false, kVector, g[a], Four{}, shift[a], moments[a]);
    for (int k = 0; k < Rule::kMoments; ++k) store_four(all_moments[k] + i, moments[a][k]);
  }
}

template <bool kSumValues, class Rule, int kCount>
__global__ void __launch_bounds__(kThreads, 2)
    measure(const __grid_constant__ CudaPass<Rule> pass,
            const __grid_constant__ Pointers<kCount> gradients, const float* loss) {
  // From the end: the gradients that square_gradients read last may still be in the cache.
  const int index = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const SweepChunk chunk = pass.chunks[index];
  const SweepView<Rule>& view = pass.view;
  const Rule rule = view.rules[chunk.layer];
  const bool commit = view.commit && !*pass.broken && isfinite(*loss);
  const bool difference = view.displacement.difference;
  const bool reads_values = kSumValues || difference || rule.reads_values();
  const float* gradient = gradients.data[chunk.tensor];
  if (gradient) gradient += chunk.offset;
  const float* values = view.values + chunk.begin;
  const float* shifts = view.displacement.shift + chunk.begin;
  float* all_moments[Rule::kMoments];
  for (int k = 0; k < Rule::kMoments; ++k) all_moments[k] = view.moments[k] + chunk.begin;
  const auto size = static_cast<std::int32_t>(chunk.size);
  std::int32_t i = threadIdx.x * kVector;
  UpdateSums sums;
  if (is_whole(chunk, gradient) && !reads_values && commit) {
    // The common case, with nothing in the way of many loads at once.
    constexpr int kAhead = 2;
    for (; i + (kAhead - 1) * kStride < size; i += kAhead * kStride) {
      take_ahead<kAhead>(rule, gradient, shifts, all_moments, i, sums);
    }
    if (i < size) take_ahead<1>(rule, gradient, shifts, all_moments, i, sums);
  } else {
    for (; i < size; i += kStride) {
      const int width = min(size - i, kVector);
      const Four g = load(gradient, i, width), shift = load(shifts, i, width);
      const Four value = load(reads_values ? values : nullptr, i, width);
      Four moments[Rule::kMoments];
      for (int k = 0; k < Rule::kMoments; ++k) moments[k] = load(all_moments[k], i, width);
      sums.take<kSumValues>(rule, difference, width, g, value, shift, moments);
      for (int k = 0; commit && k < Rule::kMoments; ++k) {
        store(all_moments[k], i, width, moments[k]);
      }
    }
  }
  block_sum(sums.values);
  if (threadIdx.x > 0) return;
  double* part = pass.parts + index * kSumColumns;
  part[kUpdateSq] = sums.values[0];
  part[kUpdateDotShift] = sums.values[1];
  part[kShiftSq] = sums.values[2];
  part[kValueSq] = sums.values[3];
}

/// The sums over each layer's chunks.
template <class Rule>
__global__ void __launch_bounds__(kThreads)
    total(const __grid_constant__ CudaPass<Rule> pass, double* table) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *pass.broken = 0;
  double sums[kSumColumns] = {};
  const int end = pass.layer_begin[blockIdx.x + 1];
  for (int i = pass.layer_begin[blockIdx.x] + threadIdx.x; i < end; i += kThreads) {
    for (int c = 0; c < kSumColumns; ++c) sums[c] += pass.parts[i * kSumColumns + c];
  }
  block_sum(sums);
  if (threadIdx.x > 0) return;
  for (int c = 0; c < kSumColumns; ++c) table[blockIdx.x * kSumColumns + c] = sums[c];
}

/// Moves a block's part of one layer. `kWhole`: it is read and written in whole vectors.
template <bool kWhole, class Rule>
__device__ void move(const SweepView<Rule>& view, const SweepChunk& chunk, const Rule& rule,
                     float weight, const float* gradient) {
  const auto load_part = [](const float* data, std::int64_t at, int width) {
    if constexpr (kWhole) return data ? load_four(data + at) : Four{};
    return load(data, at, width);
  };
  const auto size = static_cast<std::int32_t>(chunk.size);
  for (std::int32_t i = threadIdx.x * kVector; i < size; i += kStride) {
    const int width = kWhole ? kVector : min(size - i, kVector);
    const std::int64_t at = chunk.begin + i;
    const Four g = load_part(gradient, i, width);
    Four value = load_part(view.values, at, width);
    Four shift =
        load_part(view.displacement.difference ? nullptr : view.displacement.shift, at, width);
    Four recent = load_part(view.displacement.recent, at, width);
    Four moments[Rule::kMoments];
    for (int k = 0; k < Rule::kMoments; ++k) moments[k] = load_part(view.moments[k], at, width);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      float fresh[Rule::kMoments];
      for (int k = 0; k < Rule::kMoments; ++k) fresh[k] = moments[k].x[j];
      if (view.commit) rule.advance(g.x[j], value.x[j], fresh);
      const float update = rule.update(g.x[j], value.x[j], fresh), delta = weight * update;
      for (int k = 0; k < Rule::kMoments; ++k) moments[k].x[j] = fresh[k];
      value.x[j] += delta;
      shift.x[j] = view.displacement.proposed ? view.displacement.keep * shift.x[j] + update
                                              : shift.x[j] + delta;
      recent.x[j] = view.displacement.proposed ? view.displacement.keep * recent.x[j] + update
                                               : recent.x[j] + delta;
    }
    if (weight != 0) store(view.values, at, width, value);
    if (!view.displacement.difference) store(view.displacement.shift, at, width, shift);
    if (view.displacement.recent) store(view.displacement.recent, at, width, recent);
    for (int k = 0; view.commit && weight != 0 && k < Rule::kMoments; ++k) {
      store(view.moments[k], at, width, moments[k]);
    }
  }
}

template <class Rule, int kCount>
__global__ void __launch_bounds__(kThreads, 2)
    apply(const __grid_constant__ CudaPass<Rule> pass,
          const __grid_constant__ Pointers<kCount> gradients) {
  const SweepChunk chunk = pass.chunks[pass.first_chunk + blockIdx.x];
  const float weight = pass.weights ? pass.weights[chunk.layer] : pass.weight;
  if (weight == 0 && !pass.view.displacement.proposed) return;
  const Rule rule = pass.view.rules[chunk.layer];
  const float* gradient = gradients.data[chunk.tensor];
  if (gradient) gradient += chunk.offset;
  is_whole(chunk, gradient) ? move<true>(pass.view, chunk, rule, weight, gradient)
                            : move<false>(pass.view, chunk, rule, weight, gradient);
}

/// Calls `use` with the pointers as a kernel's argument, in the smaller of two sizes.
template <class Use>
void with_pointers(const float* const* gradients, std::size_t tensors, const Use& use) {
  constexpr std::size_t kFew = 256;
  if (tensors <= kFew) {
    Pointers<kFew> pointers;
    std::memcpy(pointers.data, gradients, tensors * sizeof(float*));
    use(pointers);
  } else {
    Pointers<kMostCudaTensors> pointers;
    std::memcpy(pointers.data, gradients, tensors * sizeof(float*));
    use(pointers);
  }
}

}  // namespace

template <class Rule>
void queue_measure(const CudaPass<Rule>& pass, const float* const* gradients, std::size_t tensors,
                   const float* loss, double* table, cudaStream_t stream) {
  with_pointers(gradients, tensors, [&](const auto& pointers) {
    square_gradients<<<pass.chunk_count, kThreads, 0, stream>>>(pass, pointers);
    if (pass.view.sum_values) {
      measure<true><<<pass.chunk_count, kThreads, 0, stream>>>(pass, pointers, loss);
    } else {
      measure<false><<<pass.chunk_count, kThreads, 0, stream>>>(pass, pointers, loss);
    }
    total<<<pass.layer_count, kThreads, 0, stream>>>(pass, table);
  });
  check_cuda(cudaGetLastError());
}

template <class Rule>
void queue_apply(const CudaPass<Rule>& pass, const float* const* gradients, std::size_t tensors,
                 cudaStream_t stream) {
  with_pointers(gradients, tensors, [&](const auto& pointers) {
    apply<<<pass.last_chunk - pass.first_chunk, kThreads, 0, stream>>>(pass, pointers);
  });
  check_cuda(cudaGetLastError());
}

#define GALA_CUDA_SWEEP(RULE)                                                          \
  template void queue_measure(const CudaPass<RULE>&, const float* const*, std::size_t, \
                              const float*, double*, cudaStream_t);                    \
  template void queue_apply(const CudaPass<RULE>&, const float* const*, std::size_t, cudaStream_t)

GALA_CUDA_SWEEP(AdamRule);
GALA_CUDA_SWEEP(SgdRule);

}  // namespace gala
