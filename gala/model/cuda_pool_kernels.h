#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace gala {

/// Channels-last maps with fewer than 2^31 values; the number of channels is a multiple of four.
struct PoolShape {
  std::uint32_t images, channels, height, width;

  std::uint32_t out_height() const { return (height - 1) / 2 + 1; }
  std::uint32_t out_width() const { return (width - 1) / 2 + 1; }
};

// T is float or __nv_bfloat16. `places` says for every value of the output where in its window of 3 x 3
// it came from, row by row.

/// `places` may be null where nobody goes backward.
template <class T>
void queue_pool(const PoolShape& shape, const T* input, T* output, std::uint8_t* places,
                cudaStream_t stream);
/// Writes every value of `input_gradient`.
template <class T>
void queue_pool_backward(const PoolShape& shape, const T* output_gradient,
                         const std::uint8_t* places, T* input_gradient, cudaStream_t stream);

}  // namespace gala
