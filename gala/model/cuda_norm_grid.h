#pragma once
// For kernels alone: how the kernels of norm layers walk over maps.
#include <algorithm>
#include <cstdint>

#include "gala/base/cuda_four.h"
#include "gala/model/cuda_norm_kernels.h"

namespace gala {

constexpr int kNormThreads = 256;

/// Threads of a block stand side by side along the channels, four of them each, in as many rows as
/// fit; every thread walks down the places and always sees the same channels.
struct NormGrid {
  int columns;         ///< groups of four channels in a block
  int rows_per_block;  ///< places it looks at together
  dim3 blocks;

  explicit NormGrid(const NormShape& shape) {
    /// Enough blocks to fill any GPU several times over.
    constexpr std::int64_t kMostBlocks = 528;
    constexpr std::int64_t kLeastRows = 4;
    const auto groups = static_cast<int>(shape.channels / Four::kSize);
    columns = std::min(groups, kNormThreads);
    rows_per_block = kNormThreads / columns;
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
struct NormPlace {
  std::int64_t channel, first_row, step;
  bool inside;

  __device__ NormPlace(const NormShape& shape, int columns) {
    const int column = static_cast<int>(threadIdx.x) % columns;
    const int row = static_cast<int>(threadIdx.x) / columns;
    const int rows_per_block = static_cast<int>(blockDim.x) / columns;
    channel = (static_cast<std::int64_t>(blockIdx.y) * columns + column) * Four::kSize;
    first_row = static_cast<std::int64_t>(blockIdx.x) * rows_per_block + row;
    step = static_cast<std::int64_t>(gridDim.x) * rows_per_block;
    inside = channel < shape.channels;
  }
};

/// As LibTorch has it: what is no number stays so, and passes its gradient on.
__device__ inline bool cut_off(float value) {
  return value <= 0;
}

/// Adds up what the rows of a block found for the same channels, always in the same order, and leaves the two
/// sums in the block's row of `parts`. Called by all threads of a block.
__device__ inline void leave_parts(const NormShape& shape, const NormPlace& place, int columns,
                                   Four first, Four second, float* __restrict__ parts) {
  __shared__ Four firsts[kNormThreads], seconds[kNormThreads];
  firsts[threadIdx.x] = first;
  seconds[threadIdx.x] = second;
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= columns || !place.inside) return;
  for (unsigned other = threadIdx.x + columns; other < blockDim.x; other += columns) {
    for (int j = 0; j < Four::kSize; ++j) {
      first.x[j] += firsts[other].x[j];
      second.x[j] += seconds[other].x[j];
    }
  }
  float* part = parts + static_cast<std::int64_t>(blockIdx.x) * 2 * shape.channels + place.channel;
  store_four(part, first);
  store_four(part + shape.channels, second);
}

/// The sum of one column of `parts`, for the whole warp's first thread.
__device__ inline double total_of_parts(const float* __restrict__ parts, int count,
                                        std::int64_t channels, std::int64_t column) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32) {
    sum += parts[i * 2 * channels + column];
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0U, sum, offset);
  return sum;
}

/// Blocks for so many warps.
inline unsigned norm_blocks(std::int64_t warps) {
  return static_cast<unsigned>((warps * 32 + kNormThreads - 1) / kNormThreads);
}

/// The two sums of every channel, from the parts that a NormGrid of this shape left.
void queue_norm_totals(const NormShape& shape, const float* parts, float* first, float* second,
                       cudaStream_t stream);

}  // namespace gala
