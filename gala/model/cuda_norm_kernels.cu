#include "gala/base/cuda_check.h"
#include "gala/model/cuda_norm_grid.h"

namespace gala {
namespace {

constexpr int kThreads = kNormThreads;
constexpr int kVector = Four::kSize;

template <bool kRelu, bool kAdd, class T>
__global__ void __launch_bounds__(kThreads)
    normalise(NormShape shape, NormParameters parameters, NormMaps<T> maps, int columns) {
  const T* __restrict__ input = maps.input;
  const T* __restrict__ added = maps.added;
  T* __restrict__ output = maps.output;
  const NormPlace place(shape, columns);
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
  const NormPlace place(shape, columns);
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
  leave_parts(shape, place, columns, scale_sum, shift_sum, parts);
}

/// One warp for each of the 2 · channels sums.
__global__ void __launch_bounds__(kThreads)
    total(const float* __restrict__ parts, int count, std::int64_t channels,
          float* __restrict__ first, float* __restrict__ second) {
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (column >= 2 * channels) return;
  const double sum = total_of_parts(parts, count, channels, column);
  if (threadIdx.x % 32 > 0) return;
  (column < channels ? first[column] : second[column - channels]) = static_cast<float>(sum);
}

}  // namespace

std::int64_t norm_parts(const NormShape& shape) {
  return NormGrid(shape).blocks.x;
}

void queue_norm_totals(const NormShape& shape, const float* parts, float* first, float* second,
                       cudaStream_t stream) {
  total<<<norm_blocks(2 * shape.channels), kThreads, 0, stream>>>(
      parts, static_cast<int>(NormGrid(shape).blocks.x), shape.channels, first, second);
  check_cuda(cudaGetLastError());
}

template <class T>
void queue_norm(const NormShape& shape, const NormParameters& parameters, const NormMaps<T>& maps,
                cudaStream_t stream) {
  const NormGrid grid(shape);
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
  const NormGrid grid(shape);
  // Without a relu what was added takes the gradient of the output itself.
  const auto kernel = !maps.relu            ? normalise_backward<false, false, T>
                      : maps.added_gradient ? normalise_backward<true, true, T>
                                            : normalise_backward<true, false, T>;
  kernel<<<grid.blocks, grid.threads(), 0, stream>>>(shape, parameters, maps, parts, grid.columns);
  queue_norm_totals(shape, parts, scale_gradient, shift_gradient, stream);
}

#define GALA_CUDA_NORM(T)                                                                        \
  template void queue_norm(const NormShape&, const NormParameters&, const NormMaps<T>&,          \
                           cudaStream_t);                                                        \
  template void queue_norm_backward(const NormShape&, const NormParameters&, const NormMaps<T>&, \
                                    float*, float*, float*, cudaStream_t)

GALA_CUDA_NORM(float);
GALA_CUDA_NORM(__nv_bfloat16);

}  // namespace gala
