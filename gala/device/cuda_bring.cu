#include <algorithm>

#include "gala/base/cuda_check.h"
#include "gala/device/cuda_bring.h"

namespace gala {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 64;

__global__ void __launch_bounds__(kThreads) copy_all(const __grid_constant__ CudaCopies copies) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (int c = 0; c < copies.count; ++c) {
    for (std::int64_t i = first; i < copies.words[c]; i += stride) {
      copies.to[c][i] = copies.from[c][i];
    }
  }
}

}  // namespace

void queue_copies(const CudaCopies& copies, cudaStream_t stream) {
  std::int64_t longest = 1;
  for (int c = 0; c < copies.count; ++c) longest = std::max(longest, copies.words[c]);
  const auto blocks = std::min((longest + kThreads - 1) / kThreads, kMostBlocks);
  copy_all<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(copies);
  check_cuda(cudaGetLastError());
}

}  // namespace gala
