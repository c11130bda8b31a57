#include "gala/base/cuda_check.h"
#include "gala/view/cuda_view_kernels.h"
#include "gala/view/patch_order.h"

namespace gala {
namespace {

constexpr unsigned kThreads = 256;
/// Numbers of one image that a block moves.
constexpr std::uint32_t kChunk = kThreads * 16;

__host__ __device__ std::uint32_t size_of(const PatchTask& task) {
  return task.planes * task.height * task.width * task.step;
}

__host__ __device__ std::uint32_t chunks_of(const PatchTask& task) {
  return (size_of(task) + kChunk - 1) / kChunk;
}

__global__ void __launch_bounds__(kThreads)
    shuffle(const PatchTask task, const std::uint64_t* seed, const float* __restrict__ input,
            float* __restrict__ output) {
  __shared__ std::int16_t order[kMostPatches];
  const std::uint32_t chunks = chunks_of(task), size = size_of(task);
  const std::uint32_t image = blockIdx.x / chunks, begin = blockIdx.x % chunks * kChunk;
  if (threadIdx.x == 0) {
    order_patches(*seed, image, static_cast<std::int32_t>(task.grid * task.grid), order);
  }
  __syncthreads();
  const std::uint32_t tall = task.height / task.grid, wide = task.width / task.grid;
  const std::uint32_t end = min(begin + kChunk, size);
  for (std::uint32_t i = begin + threadIdx.x; i < end; i += kThreads) {
    std::uint32_t rest = i / task.step;
    const std::uint32_t column = rest % task.width;
    rest /= task.width;
    const std::uint32_t row = rest % task.height, plane = rest / task.height;
    const std::uint32_t from = order[row / tall * task.grid + column / wide];
    const std::uint32_t from_row = from / task.grid * tall + row % tall;
    const std::uint32_t from_column = from % task.grid * wide + column % wide;
    const std::uint32_t pixel = (plane * task.height + from_row) * task.width + from_column;
    output[image * size + i] = input[image * size + pixel * task.step + i % task.step];
  }
}

}  // namespace

void queue_shuffle(const PatchTask& task, const std::uint64_t* seed, const float* input,
                   float* output, cudaStream_t stream) {
  shuffle<<<task.images * chunks_of(task), kThreads, 0, stream>>>(task, seed, input, output);
  check_cuda(cudaGetLastError());
}

}  // namespace gala
