#include "gala/base/cuda_check.h"
#include "gala/model/cuda_norm_grid.h"

namespace gala {
namespace {

constexpr int kThreads = kNormThreads;
constexpr int kVector = Four::kSize;

/// Places that count.
__device__ std::int64_t counted_rows(const NormShape& shape, const NormCount& count) {
  return count.images ? min(*count.images * count.rows_per_image, shape.rows) : shape.rows;
}

/// Sums of the values and of their squares, less the first value of the channel: where the mean is large
/// beside the deviation, the squares alone would lose it.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_values(NormShape shape, NormCount count, const T* __restrict__ input,
               float* __restrict__ parts, int columns) {
  const NormPlace place(shape, columns);
  const std::int64_t rows = counted_rows(shape, count);
  Four sum = {}, squares = {};
  if (place.inside) {
    const Four first = load_four(input + place.channel);
#pragma unroll 4
    for (std::int64_t row = place.first_row; row < rows; row += place.step) {
      const Four value = load_four(input + row * shape.channels + place.channel);
      for (int j = 0; j < kVector; ++j) {
        const float less = value.x[j] - first.x[j];
        sum.x[j] += less;
        squares.x[j] += less * less;
      }
    }
  }
  leave_parts(shape, place, columns, sum, squares, parts);
}

/// One warp for each channel.
template <class T>
__global__ void __launch_bounds__(kThreads)
    finish_statistics(NormShape shape, NormCount count, const T* __restrict__ input,
                      const float* __restrict__ parts, int part_count, float* __restrict__ mean,
                      float* __restrict__ variance) {
  const std::int64_t channel =
      (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (channel >= shape.channels) return;
  const double sum = total_of_parts(parts, part_count, shape.channels, channel);
  const double squares =
      total_of_parts(parts, part_count, shape.channels, shape.channels + channel);
  if (threadIdx.x % 32 > 0) return;
  const auto rows = static_cast<double>(max(counted_rows(shape, count), std::int64_t{1}));
  const double less = sum / rows, spread = squares / rows - less * less;
  mean[channel] =
      static_cast<float>(static_cast<double>(static_cast<float>(input[channel])) + less);
  variance[channel] = static_cast<float>(spread < 0 ? 0 : spread);  // what is no number stays so
}

/// How a backward pass sees one group of channels.
struct Channels {
  Four scale, shift, mean, inverse;

  __device__ Channels(const NormShape& shape, const NormParameters& parameters,
                      std::int64_t channel)
      : scale(load_four(parameters.scale + channel)),
        shift(load_four(parameters.shift + channel)),
        mean(load_four(parameters.mean + channel)) {
    const Four variance = load_four(parameters.variance + channel);
    for (int j = 0; j < kVector; ++j) inverse.x[j] = rsqrtf(variance.x[j] + shape.epsilon);
  }
  /// The value less its mean, over the deviation.
  __device__ float even(float value, int j) const { return (value - mean.x[j]) * inverse.x[j]; }
  /// The norm's own result, by the same operations as forward.
  __device__ float result(float value, int j) const {
    return (value - mean.x[j]) * (scale.x[j] * inverse.x[j]) + shift.x[j];
  }
};

/// Sums of the gradients, and of their products with the even values. Where something was added and then cut off,
/// the gradient behind the cut is stored: it is what was added's own.
template <bool kRelu, bool kAdd, class T>
__global__ void __launch_bounds__(kThreads)
    sum_gradients(NormShape shape, NormCount count, NormParameters parameters, NormMaps<T> maps,
                  float* __restrict__ parts, int columns) {
  const T* __restrict__ input = maps.input;
  const T* __restrict__ output = maps.output;
  const T* __restrict__ output_gradient = maps.output_gradient;
  T* __restrict__ added_gradient = maps.added_gradient;
  const NormPlace place(shape, columns);
  const std::int64_t counted = counted_rows(shape, count);
  // Where gradients are stored, all are.
  const std::int64_t rows = kRelu && kAdd ? shape.rows : counted;
  Four products = {}, sum = {};
  if (place.inside) {
    const Channels channels(shape, parameters, place.channel);
#pragma unroll 4
    for (std::int64_t row = place.first_row; row < rows; row += place.step) {
      const std::int64_t at = row * shape.channels + place.channel;
      const Four value = load_four(input + at);
      Four gradient = load_four(output_gradient + at);
      Four result = {};
      if constexpr (kRelu && kAdd) result = load_four(output + at);
      for (int j = 0; j < kVector; ++j) {
        if constexpr (kRelu && !kAdd) result.x[j] = channels.result(value.x[j], j);
        if (kRelu && cut_off(result.x[j])) gradient.x[j] = 0;
      }
      if constexpr (kRelu && kAdd) store_four(added_gradient + at, gradient);
      if (row >= counted) continue;
      for (int j = 0; j < kVector; ++j) {
        sum.x[j] += gradient.x[j];
        products.x[j] += gradient.x[j] * channels.even(value.x[j], j);
      }
    }
  }
  leave_parts(shape, place, columns, products, sum, parts);
}

/// The gradient of the input: that of the output, less what it would do to mean and deviation.
template <bool kRelu, bool kAdd, class T>
__global__ void __launch_bounds__(kThreads)
    spread_gradients(NormShape shape, NormCount count, NormParameters parameters, NormPull pull,
                     NormMaps<T> maps, const float* __restrict__ scale_gradient,
                     const float* __restrict__ shift_gradient, int columns) {
  const T* __restrict__ input = maps.input;
  // What was stored has been through the cut already.
  const T* __restrict__ gradients = kRelu && kAdd ? maps.added_gradient : maps.output_gradient;
  T* __restrict__ input_gradient = maps.input_gradient;
  const NormPlace place(shape, columns);
  if (!place.inside) return;
  const std::int64_t counted = counted_rows(shape, count);
  const Channels channels(shape, parameters, place.channel);
  const Four middle = pull.mean ? load_four(pull.mean + place.channel) : channels.mean;
  Four share;
  for (int j = 0; j < kVector; ++j) {
    share.x[j] = 1.0F / static_cast<float>(max(counted, std::int64_t{1}));
    if (pull.share) share.x[j] *= pull.share[place.channel + j];
  }
  const Four products = load_four(scale_gradient + place.channel);
  const Four sum = load_four(shift_gradient + place.channel);
#pragma unroll 4
  for (std::int64_t row = place.first_row; row < shape.rows; row += place.step) {
    const std::int64_t at = row * shape.channels + place.channel;
    if (row >= counted) {
      store_four(input_gradient + at, Four{});
      continue;
    }
    const Four value = load_four(input + at);
    Four gradient = load_four(gradients + at);
    for (int j = 0; j < kVector; ++j) {
      if constexpr (kRelu && !kAdd) {
        if (cut_off(channels.result(value.x[j], j))) gradient.x[j] = 0;
      }
      const float off = (value.x[j] - middle.x[j]) * channels.inverse.x[j];
      const float pulled =
          gradient.x[j] - share.x[j] * sum.x[j] - off * (share.x[j] * products.x[j]);
      gradient.x[j] = channels.scale.x[j] * channels.inverse.x[j] * pulled;
    }
    store_four(input_gradient + at, gradient);
  }
}

}  // namespace

template <class T>
void queue_norm_statistics(const NormShape& shape, const NormCount& count, const T* input,
                           float* parts, float* mean, float* variance, cudaStream_t stream) {
  const NormGrid grid(shape);
  sum_values<<<grid.blocks, grid.threads(), 0, stream>>>(shape, count, input, parts, grid.columns);
  finish_statistics<<<norm_blocks(shape.channels), kThreads, 0, stream>>>(
      shape, count, input, parts, static_cast<int>(grid.blocks.x), mean, variance);
  check_cuda(cudaGetLastError());
}

template <class T>
void queue_batch_norm_backward(const NormShape& shape, const NormCount& count,
                               const NormParameters& parameters, const NormPull& pull,
                               const NormMaps<T>& maps, float* parts, float* scale_gradient,
                               float* shift_gradient, cudaStream_t stream) {
  const NormGrid grid(shape);
  const auto launch = [&](auto sum, auto spread) {
    sum<<<grid.blocks, grid.threads(), 0, stream>>>(shape, count, parameters, maps, parts,
                                                    grid.columns);
    queue_norm_totals(shape, parts, scale_gradient, shift_gradient, stream);
    spread<<<grid.blocks, grid.threads(), 0, stream>>>(
        shape, count, parameters, pull, maps, scale_gradient, shift_gradient, grid.columns);
  };
  // Without a relu what was added takes the gradient of the output itself.
  if (!maps.relu) {
    launch(sum_gradients<false, false, T>, spread_gradients<false, false, T>);
  } else if (maps.added_gradient) {
    launch(sum_gradients<true, true, T>, spread_gradients<true, true, T>);
  } else {
    launch(sum_gradients<true, false, T>, spread_gradients<true, false, T>);
  }
  check_cuda(cudaGetLastError());
}

#define GALA_CUDA_BATCH_NORM(T)                                                             \
  template void queue_norm_statistics(const NormShape&, const NormCount&, const T*, float*, \
                                      float*, float*, cudaStream_t);                        \
  template void queue_batch_norm_backward(                                                  \
      const NormShape&, const NormCount&, const NormParameters&, const NormPull&,           \
      const NormMaps<T>&, float*, float*, float*, cudaStream_t)

GALA_CUDA_BATCH_NORM(float);
GALA_CUDA_BATCH_NORM(__nv_bfloat16);

}  // namespace gala
