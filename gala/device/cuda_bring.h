#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace gala {

/// Pieces of device memory and where they go, counted in words of four bytes.
struct CudaCopies {
  static constexpr int kMost = 6;
  const std::uint32_t* from[kMost];
  std::uint32_t* to[kMost];
  std::int64_t words[kMost];
  int count;
};

/// Queues all of them as one kernel. The targets may be pinned host memory, which a kernel writes to
/// as it is: for the little that a step tells the host that is quicker than a copy of its own.
void queue_copies(const CudaCopies& copies, cudaStream_t stream);

}  // namespace gala
