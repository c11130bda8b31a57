#pragma once
// For kernels alone.
#include <cuda_runtime.h>

namespace gala {

/// What a thread of a kernel reads or writes at once.
struct Four {
  static constexpr int kSize = 4;
  float x[kSize];
};

/// From an address that is a multiple of 16 bytes.
__device__ inline Four load_four(const float* data) {
  const float4 value = *reinterpret_cast<const float4*>(data);
  return {{value.x, value.y, value.z, value.w}};
}

__device__ inline void store_four(float* data, const Four& four) {
  *reinterpret_cast<float4*>(data) = make_float4(four.x[0], four.x[1], four.x[2], four.x[3]);
}

}  // namespace gala
