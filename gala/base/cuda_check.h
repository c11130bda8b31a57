#pragma once
// For nvcc too, so without the rest of the library.
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace gala {

/// Throws what CUDA says went wrong, and takes it away, so that the next call is not blamed for it. A GPU
/// whose memory is full has not failed.
inline void check_cuda(cudaError_t error) {
  if (error != cudaSuccess) {
    cudaGetLastError();
    if (error == cudaErrorMemoryAllocation) {
      throw std::runtime_error("the device has not enough memory for this");
    }
    throw std::runtime_error(std::string("the GPU failed: ") + cudaGetErrorString(error));
  }
}

}  // namespace gala
