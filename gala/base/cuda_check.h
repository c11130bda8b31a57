#pragma once
// For nvcc too, so without the rest of the library.
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace gala {

/// Throws what CUDA says went wrong, and takes it away, so that the next call is not blamed for it.
inline void check_cuda(cudaError_t error) {
  if (error != cudaSuccess) {
    cudaGetLastError();
    throw std::runtime_error(std::string("the GPU failed: ") + cudaGetErrorString(error));
  }
}

}  // namespace gala
