#include <cmath>

#include "gala/base/cuda_check.h"
#include "gala/base/cuda_four.h"
#include "gala/model/cuda_pool_kernels.h"

namespace gala {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kVector = Four::kSize;
constexpr int kWindow = 3;

/// Four channels of one place in the maps: what a thread is responsible for.
struct Place {
  std::uint32_t channel, column, row, image;

  /// The `index`-th of maps of that size.
  __device__ Place(std::uint32_t index, std::uint32_t channels, std::uint32_t height,
                   std::uint32_t width) {
    const std::uint32_t groups = channels / kVector;
    channel = index % groups * kVector;
    index /= groups;
    column = index % width;
    index /= width;
    row = index % height;
    image = index / height;
  }
};

__device__ std::uint32_t thread_index() {
  return blockIdx.x * kThreads + threadIdx.x;
}

/// As LibTorch has it: the first of equal values, and the last that is no number.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pool(PoolShape shape, std::uint32_t out_height, std::uint32_t out_width, std::uint32_t count,
         const T* __restrict__ input, T* __restrict__ output, std::uint8_t* __restrict__ places) {
  const std::uint32_t index = thread_index();
  if (index >= count) return;
  const Place out(index, shape.channels, out_height, out_width);
  Four most;
  int from[kVector];
  for (int j = 0; j < kVector; ++j) {
    most.x[j] = -INFINITY;
    from[j] = (out.row == 0 ? kWindow : 0) + (out.column == 0 ? 1 : 0);  // the first one inside
  }
#pragma unroll
  for (int y = 0; y < kWindow; ++y) {
    const std::uint32_t row = 2 * out.row + y - 1;  // before the first row: a large number
    if (row >= shape.height) continue;
#pragma unroll
    for (int x = 0; x < kWindow; ++x) {
      const std::uint32_t column = 2 * out.column + x - 1;
      if (column >= shape.width) continue;
      const std::uint32_t at = (out.image * shape.height + row) * shape.width + column;
      const Four value = load_four(input + at * shape.channels + out.channel);
      for (int j = 0; j < kVector; ++j) {
        if (value.x[j] > most.x[j] || isnan(value.x[j])) {
          most.x[j] = value.x[j];
          from[j] = y * kWindow + x;
        }
      }
    }
  }
  const std::uint32_t at = index * kVector;
  store_four(output + at, most);
  if (places) {
    *reinterpret_cast<uchar4*>(places + at) = make_uchar4(from[0], from[1], from[2], from[3]);
  }
}

/// What the up to four windows that hold a place give back to it, always added in the same order.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pool_backward(PoolShape shape, std::uint32_t out_height, std::uint32_t out_width,
                  std::uint32_t count, const T* __restrict__ output_gradient,
                  const std::uint8_t* __restrict__ places, T* __restrict__ input_gradient) {
  const std::uint32_t index = thread_index();
  if (index >= count) return;
  const Place in(index, shape.channels, shape.height, shape.width);
  Four sum = {};
  // Window k covers the rows 2k - 1 to 2k + 1.
#pragma unroll
  for (int y = 0; y < 2; ++y) {
    const std::uint32_t row = in.row / 2 + y;
    if ((y == 1 && in.row % 2 == 0) || row >= out_height) continue;
#pragma unroll
    for (int x = 0; x < 2; ++x) {
      const std::uint32_t column = in.column / 2 + x;
      if ((x == 1 && in.column % 2 == 0) || column >= out_width) continue;
      const std::uint32_t at =
          ((in.image * out_height + row) * out_width + column) * shape.channels + in.channel;
      const uchar4 from = *reinterpret_cast<const uchar4*>(places + at);
      const Four gradient = load_four(output_gradient + at);
      const unsigned here = (in.row + 1 - 2 * row) * kWindow + (in.column + 1 - 2 * column);
      if (from.x == here) sum.x[0] += gradient.x[0];
      if (from.y == here) sum.x[1] += gradient.x[1];
      if (from.z == here) sum.x[2] += gradient.x[2];
      if (from.w == here) sum.x[3] += gradient.x[3];
    }
  }
  store_four(input_gradient + index * kVector, sum);
}

unsigned blocks_for(std::uint32_t count) {
  return (count + kThreads - 1) / kThreads;
}

}  // namespace

template <class T>
void queue_pool(const PoolShape& shape, const T* input, T* output, std::uint8_t* places,
                cudaStream_t stream) {
  const std::uint32_t height = shape.out_height(), width = shape.out_width();
  const std::uint32_t count = shape.images * height * width * (shape.channels / kVector);
  pool<<<blocks_for(count), kThreads, 0, stream>>>(shape, height, width, count, input, output,
                                                   places);
  check_cuda(cudaGetLastError());
}

template <class T>
void queue_pool_backward(const PoolShape& shape, const T* output_gradient,
                         const std::uint8_t* places, T* input_gradient, cudaStream_t stream) {
  const std::uint32_t count =
      shape.images * shape.height * shape.width * (shape.channels / kVector);
  pool_backward<<<blocks_for(count), kThreads, 0, stream>>>(
      shape, shape.out_height(), shape.out_width(), count, output_gradient, places, input_gradient);
  check_cuda(cudaGetLastError());
}

#define GALA_CUDA_POOL(T)                                                                \
  template void queue_pool(const PoolShape&, const T*, T*, std::uint8_t*, cudaStream_t); \
  template void queue_pool_backward(const PoolShape&, const T*, const std::uint8_t*, T*, \
                                    cudaStream_t)

GALA_CUDA_POOL(float);
GALA_CUDA_POOL(__nv_bfloat16);

}  // namespace gala
