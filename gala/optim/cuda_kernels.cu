// Compiled without fused products (see CMakeLists.txt): the updates are the CPU's bit for bit, the
// sums differ only in their order, which is fixed here too.
#include <cstring>
#include <stdexcept>
#include <string>

#include "gala/optim/adam_rule.h"
#include "gala/optim/cuda_kernels.h"
#include "gala/optim/sgd_rule.h"

namespace gala {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;

template <int kCount>
struct Pointers {
  const float* data[kCount];
};

/// Four neighbours; those past the end are zero.
struct Four {
  float x[kVector] = {};
};

__device__ Four load(const float* data, std::int64_t at, int width) {
  Four four;
  if (!data) return four;
  if (width == kVector && reinterpret_cast<std::uintptr_t>(data + at) % sizeof(float4) == 0) {
    const float4 value = *reinterpret_cast<const float4*>(data + at);
    four.x[0] = value.x, four.x[1] = value.y, four.x[2] = value.z, four.x[3] = value.w;
  } else {
    for (int i = 0; i < width; ++i) four.x[i] = data[at + i];
  }
  return four;
}

__device__ void store(float* data, std::int64_t at, int width, const Four& four) {
  if (width == kVector) {  // the arena's parts begin on cache lines
    *reinterpret_cast<float4*>(data + at) = make_float4(four.x[0], four.x[1], four.x[2], four.x[3]);
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

template <class Rule, int kCount>
__global__ void __launch_bounds__(kThreads)
    square_gradients(const __grid_constant__ CudaPass<Rule> pass,
                     const __grid_constant__ Pointers<kCount> gradients, const float* loss) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *pass.finite = isfinite(*loss);
  const SweepChunk chunk = pass.chunks[blockIdx.x];
  const float* gradient = gradients.data[chunk.tensor];
  double sums[1] = {0};
  if (gradient) {
    gradient += chunk.offset;
    for (std::int64_t i = threadIdx.x * kVector; i < chunk.size; i += kThreads * kVector) {
      const Four g = load(gradient, i, static_cast<int>(min(chunk.size - i, std::int64_t{4})));
      for (const float x : g.x) sums[0] += static_cast<double>(x) * x;
    }
  }
  block_sum(sums);
  if (threadIdx.x == 0) pass.parts[blockIdx.x * kSumColumns + kGradientSq] = sums[0];
}

template <class Rule>
__global__ void __launch_bounds__(kThreads)
    total_gradients(const __grid_constant__ CudaPass<Rule> pass, double* table) {
  double sums[1] = {0};
  const int end = pass.layer_begin[blockIdx.x + 1];
  for (int i = pass.layer_begin[blockIdx.x] + threadIdx.x; i < end; i += kThreads) {
    sums[0] += pass.parts[i * kSumColumns + kGradientSq];
  }
  block_sum(sums);
  if (threadIdx.x > 0) return;
  table[blockIdx.x * kSumColumns + kGradientSq] = sums[0];
  if (!isfinite(sums[0])) *pass.finite = 0;
}

template <class Rule, int kCount>
__global__ void __launch_bounds__(kThreads)
    measure(const __grid_constant__ CudaPass<Rule> pass,
            const __grid_constant__ Pointers<kCount> gradients) {
  const SweepChunk chunk = pass.chunks[blockIdx.x];
  const SweepView<Rule>& view = pass.view;
  const Rule rule = view.rules[chunk.layer];
  const bool commit = view.commit && *pass.finite;
  const bool reads_values = view.sum_values || view.difference || rule.reads_values();
  const float* gradient = gradients.data[chunk.tensor];
  if (gradient) gradient += chunk.offset;
  double sums[4] = {0, 0, 0, 0};
  for (std::int64_t i = threadIdx.x * kVector; i < chunk.size; i += kThreads * kVector) {
    const int width = static_cast<int>(min(chunk.size - i, std::int64_t{kVector}));
    const std::int64_t at = chunk.begin + i;
    const Four g = load(gradient, i, width);
    const Four value = load(reads_values ? view.values : nullptr, at, width);
    const Four shift = load(view.shift, at, width);
    Four moments[Rule::kMoments];
    for (int k = 0; k < Rule::kMoments; ++k) moments[k] = load(view.moments[k], at, width);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      float fresh[Rule::kMoments];
      for (int k = 0; k < Rule::kMoments; ++k) fresh[k] = moments[k].x[j];
      rule.advance(g.x[j], value.x[j], fresh);
      const double u = j < width ? rule.update(g.x[j], value.x[j], fresh) : 0.0F;
      for (int k = 0; k < Rule::kMoments; ++k) moments[k].x[j] = fresh[k];
      const double td = view.difference ? value.x[j] - shift.x[j] : shift.x[j];
      sums[0] += u * u;
      sums[1] += u * td;
      sums[2] += td * td;
      sums[3] += static_cast<double>(value.x[j]) * value.x[j];
    }
    for (int k = 0; commit && k < Rule::kMoments; ++k)
      store(view.moments[k], at, width, moments[k]);
  }
  block_sum(sums);
  if (threadIdx.x > 0) return;
  double* part = pass.parts + blockIdx.x * kSumColumns;
  part[kUpdateSq] = sums[0];
  part[kUpdateDotShift] = sums[1];
  part[kShiftSq] = sums[2];
  part[kValueSq] = view.sum_values ? sums[3] : 0;
}

template <class Rule>
__global__ void __launch_bounds__(kThreads)
    total_updates(const __grid_constant__ CudaPass<Rule> pass, double* table) {
  constexpr int kColumns[4] = {kUpdateSq, kUpdateDotShift, kShiftSq, kValueSq};
  double sums[4] = {0, 0, 0, 0};
  const int end = pass.layer_begin[blockIdx.x + 1];
  for (int i = pass.layer_begin[blockIdx.x] + threadIdx.x; i < end; i += kThreads) {
    for (int c = 0; c < 4; ++c) sums[c] += pass.parts[i * kSumColumns + kColumns[c]];
  }
  block_sum(sums);
  if (threadIdx.x > 0) return;
  for (int c = 0; c < 4; ++c) table[blockIdx.x * kSumColumns + kColumns[c]] = sums[c];
}

template <class Rule, int kCount>
__global__ void __launch_bounds__(kThreads)
    apply(const __grid_constant__ CudaPass<Rule> pass,
          const __grid_constant__ Pointers<kCount> gradients) {
  const SweepChunk chunk = pass.chunks[pass.first_chunk + blockIdx.x];
  const SweepView<Rule>& view = pass.view;
  const float weight = pass.weights ? pass.weights[chunk.layer] : pass.weight;
  if (weight == 0) return;
  const Rule rule = view.rules[chunk.layer];
  const float* gradient = gradients.data[chunk.tensor];
  if (gradient) gradient += chunk.offset;
  for (std::int64_t i = threadIdx.x * kVector; i < chunk.size; i += kThreads * kVector) {
    const int width = static_cast<int>(min(chunk.size - i, std::int64_t{kVector}));
    const std::int64_t at = chunk.begin + i;
    const Four g = load(gradient, i, width);
    Four value = load(view.values, at, width);
    Four shift = load(view.difference ? nullptr : view.shift, at, width);
    Four recent = load(view.recent, at, width);
    Four moments[Rule::kMoments];
    for (int k = 0; k < Rule::kMoments; ++k) moments[k] = load(view.moments[k], at, width);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      float fresh[Rule::kMoments];
      for (int k = 0; k < Rule::kMoments; ++k) fresh[k] = moments[k].x[j];
      if (view.commit) rule.advance(g.x[j], value.x[j], fresh);
      const float delta = weight * rule.update(g.x[j], value.x[j], fresh);
      for (int k = 0; k < Rule::kMoments; ++k) moments[k].x[j] = fresh[k];
      value.x[j] += delta;
      shift.x[j] += delta;
      recent.x[j] += delta;
    }
    store(view.values, at, width, value);
    if (!view.difference) store(view.shift, at, width, shift);
    if (view.recent) store(view.recent, at, width, recent);
    for (int k = 0; view.commit && k < Rule::kMoments; ++k) {
      store(view.moments[k], at, width, moments[k]);
    }
  }
}

void check_launch() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("a CUDA kernel was refused: ") +
                             cudaGetErrorString(error));
  }
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
    square_gradients<<<pass.chunk_count, kThreads, 0, stream>>>(pass, pointers, loss);
    total_gradients<<<pass.layer_count, kThreads, 0, stream>>>(pass, table);
    measure<<<pass.chunk_count, kThreads, 0, stream>>>(pass, pointers);
    total_updates<<<pass.layer_count, kThreads, 0, stream>>>(pass, table);
  });
  check_launch();
}

template <class Rule>
void queue_apply(const CudaPass<Rule>& pass, const float* const* gradients, std::size_t tensors,
                 cudaStream_t stream) {
  with_pointers(gradients, tensors, [&](const auto& pointers) {
    apply<<<pass.last_chunk - pass.first_chunk, kThreads, 0, stream>>>(pass, pointers);
  });
  check_launch();
}

#define GALA_CUDA_SWEEP(RULE)                                                          \
  template void queue_measure(const CudaPass<RULE>&, const float* const*, std::size_t, \
                              const float*, double*, cudaStream_t);                    \
  template void queue_apply(const CudaPass<RULE>&, const float* const*, std::size_t, cudaStream_t)

GALA_CUDA_SWEEP(AdamRule);
GALA_CUDA_SWEEP(SgdRule);

}  // namespace gala
