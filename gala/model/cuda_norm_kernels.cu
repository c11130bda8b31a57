#include <algorithm>

#include "gala/base/cuda_check.h"
#include "gala/base/cuda_four.h"
#include "gala/model/cuda_norm_kernels.h"

namespace gala {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = Four::kSize;
/// Enough blocks to fill any GPU several times over.
constexpr std::int64_t kMostBlocks = 528;
constexpr std::int64_t kLeastRows = 4;

/// Threads of a block stand side by side along the channels, four of them each, in as many rows as
/// fit; every thread walks down the places and always sees the same channels.
struct Grid {
  int columns;         ///< groups of four channels in a block
  int rows_per_block;  ///< places it looks at together
  dim3 blocks;

  explicit Grid(const NormShape& shape) {
    const auto groups = static_cast<int>(shape.channels / kVector);
    columns = std::min(groups, kThreads);
    rows_per_block = kThreads / columns;
    const std::int64_t together = rows_per_block;
    const std::int64_t walk =
        std::max(kLeastRows, (shape.rows + together * kMostBlocks - 1) / (together * kMostBlocks));
    blocks.x = static_cast<unsigned>((shape.rows + together * walk - 1) / (together * walk));
    blocks.y = static_cast<unsigned>((groups + columns - 1) / columns);
    blocks.z = 1;
  }
  int threads() const { return columns * rows_per_block; }
};

/// What a thread is responsible for.
struct Place {
  std::int64_t channel, first_row, step;
  bool inside;

  __device__ Place(const NormShape& shape, int columns) {
    const int column = static_cast<int>(threadIdx.x) % columns;
    const int row = static_cast<int>(threadIdx.x) / columns;
    const int rows_per_block = static_cast<int>(blockDim.x) / columns;
    channel = (static_cast<std::int64_t>(blockIdx.y) * columns + column) * kVector;
    first_row = static_cast<std::int64_t>(blockIdx.x) * rows_per_block + row;
    step = static_cast<std::int64_t>(gridDim.x) * rows_per_block;
    inside = channel < shape.channels;
  }
};

/// As LibTorch has it: what is no number stays so, and passes its gradient on.
__device__ bool cut_off(float value) {
  return value <= 0;
}

template <bool kRelu, bool kAdd, class T>
__global__ void __launch_bounds__(kThreads)
    normalise(NormShape shape, NormParameters parameters, NormMaps<T> maps, int columns) {
  const T* __restrict__ input = maps.input;
  const T* __restrict__ added = maps.added;
  T* __restrict__ output = maps.output;
  const Place place(shape, columns);
  if (!place.inside) return;
  const Four scale = load_four(parameters.scale + place.channel);
  const Four shift = load_four(parameters.shift + place.channel);
  const Four mean = load_four(parameters.mean + place.channel);
  const Four variance = load_four(parameters.variance + place.channel);
  Four factor;
  for (int j = 0; j < kVector; ++j) {
    factor.x[j] = scale.x[j] * rsqrtf(variance.x[j] + shape.epsilon);
  }
#pragma unroll 4
  for (std::int64_t row = place.first_row; row < shape.rows; row += place.step) {
    const std::int64_t at = row * shape.channels + place.channel;
    Four value = load_four(input + at);
    Four more = {};
    if constexpr (kAdd) more = load_four(added + at);
    for (int j = 0; j < kVector; ++j) {
      value.x[j] = (value.x[j] - mean.x[j]) * factor.x[j] + shift.x[j];
      if constexpr (kAdd) value.x[j] += more.x[j];
      if (kRelu && cut_off(value.x[j])) value.x[j] = 0;
    }
    store_four(output + at, value);
  }
}

/// Where the relu cut off is seen from the output, or, where nothing was added, worked out anew, which
/// is cheaper than to read it.
template <bool kRelu, bool kAdd, class T>
__global__ void __launch_bounds__(kThreads)
    normalise_backward(NormShape shape, NormParameters parameters, NormMaps<T> maps,
                       float* __restrict__ parts, int columns) {
  const T* __restrict__ input = maps.input;
  const T* __restrict__ output = maps.output;
  const T* __restrict__ output_gradient = maps.output_gradient;
  T* __restrict__ input_gradient = maps.input_gradient;
  T* __restrict__ added_gradient = maps.added_gradient;
  const Place place(shape, columns);
  Four scale_sum = {}, shift_sum = {};
  if (place.inside) {
    const Four scale = load_four(parameters.scale + place.channel);
    const Four shift = load_four(parameters.shift + place.channel);
    const Four mean = load_four(parameters.mean + place.channel);
    const Four variance = load_four(parameters.variance + place.channel);
    Four inverse, factor;
    for (int j = 0; j < kVector; ++j) {
      inverse.x[j] = rsqrtf(variance.x[j] + shape.epsilon);
      factor.x[j] = scale.x[j] * inverse.x[j];
    }
#pragma unroll 4
    for (std::int64_t row = place.first_row; row < shape.rows; row += place.step) {
      const std::int64_t at = row * shape.channels + place.channel;
      const Four value = load_four(input + at);
      Four gradient = load_four(output_gradient + at);
      Four result = {};
      if constexpr (kRelu && kAdd) result = load_four(output + at);
      for (int j = 0; j < kVector; ++j) {
        if constexpr (kRelu && !kAdd) {
          result.x[j] = (value.x[j] - mean.x[j]) * factor.x[j] + shift.x[j];
        }
        if (kRelu && cut_off(result.x[j])) gradient.x[j] = 0;
      }
      if constexpr (kRelu && kAdd) store_four(added_gradient + at, gradient);
      for (int j = 0; j < kVector; ++j) {
        shift_sum.x[j] += gradient.x[j];
        scale_sum.x[j] += gradient.x[j] * ((value.x[j] - mean.x[j]) * inverse.x[j]);
        gradient.x[j] *= factor.x[j];
      }
      store_four(input_gradient + at, gradient);
    }
  }
  // Rows of the block that see the same channels, always added in the same order.
  __shared__ Four scale_sums[kThreads], shift_sums[kThreads];
  scale_sums[threadIdx.x] = scale_sum;
  shift_sums[threadIdx.x] = shift_sum;
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= columns || !place.inside) return;
  for (unsigned other = threadIdx.x + columns; other < blockDim.x; other += columns) {
    for (int j = 0; j < kVector; ++j) {
      scale_sum.x[j] += scale_sums[other].x[j];
      shift_sum.x[j] += shift_sums[other].x[j];
    }
  }
  float* part = parts + static_cast<std::int64_t>(blockIdx.x) * 2 * shape.channels + place.channel;
  store_four(part, scale_sum);
  store_four(part + shape.channels, shift_sum);
}

/// One warp for each of the 2 · channels sums.
__global__ void __launch_bounds__(kThreads)
    total(const float* __restrict__ parts, int count, std::int64_t channels,
          float* __restrict__ scale_gradient, float* __restrict__ shift_gradient) {
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (column >= 2 * channels) return;
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32) {
    sum += parts[i * 2 * channels + column];
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0U, sum, offset);
  if (threadIdx.x % 32 > 0) return;
  (column < channels ? scale_gradient[column] : shift_gradient[column - channels]) =
      static_cast<float>(sum);
}

}  // namespace

std::int64_t norm_parts(const NormShape& shape) {
  return Grid(shape).blocks.x;
}

template <class T>
void queue_norm(const NormShape& shape, const NormParameters& parameters, const NormMaps<T>& maps,
                cudaStream_t stream) {
  const Grid grid(shape);
  const auto kernel = maps.relu ? maps.added ? normalise<true, true, T> : normalise<true, false, T>
                      : maps.added ? normalise<false, true, T>
                                   : normalise<false, false, T>;
  kernel<<<grid.blocks, grid.threads(), 0, stream>>>(shape, parameters, maps, grid.columns);
  check_cuda(cudaGetLastError());
}

template <class T>
void queue_norm_backward(const NormShape& shape, const NormParameters& parameters,
                         const NormMaps<T>& maps, float* parts, float* scale_gradient,
                         float* shift_gradient, cudaStream_t stream) {
  const Grid grid(shape);
  // Without a relu what was added takes the gradient of the output itself.
  const auto kernel = !maps.relu            ? normalise_backward<false, false, T>
                      : maps.added_gradient ? normalise_backward<true, true, T>
                                            : normalise_backward<true, false, T>;
  kernel<<<grid.blocks, grid.threads(), 0, stream>>>(shape, parameters, maps, parts, grid.columns);
  const std::int64_t warps = 2 * shape.channels;
  total<<<static_cast<unsigned>((warps * 32 + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      parts, static_cast<int>(grid.blocks.x), shape.channels, scale_gradient, shift_gradient);
  check_cuda(cudaGetLastError());
}

#define GALA_CUDA_NORM(T)                                                                        \
  template void queue_norm(const NormShape&, const NormParameters&, const NormMaps<T>&,          \
                           cudaStream_t);                                                        \
  template void queue_norm_backward(const NormShape&, const NormParameters&, const NormMaps<T>&, \
                                    float*, float*, float*, cudaStream_t)

GALA_CUDA_NORM(float);
GALA_CUDA_NORM(__nv_bfloat16);

}  // namespace gala
