#pragma once
// For kernels alone.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace gala {

/// What a thread of a kernel reads or writes at once; in float32, whatever lies in memory.
struct Four {
  static constexpr int kSize = 4;
  float x[kSize];
};

// From and to addresses that are a multiple of four numbers.

__device__ inline Four load_four(const float* data) {
  const float4 value = *reinterpret_cast<const float4*>(data);
  return {{value.x, value.y, value.z, value.w}};
}

__device__ inline Four load_four(const __nv_bfloat16* data) {
  const uint2 raw = *reinterpret_cast<const uint2*>(data);
  const float2 low = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&raw.x));
  const float2 high = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&raw.y));
  return {{low.x, low.y, high.x, high.y}};
}

__device__ inline void store_four(float* data, const Four& four) {
  *reinterpret_cast<float4*>(data) = make_float4(four.x[0], four.x[1], four.x[2], four.x[3]);
}

__device__ inline void store_four(__nv_bfloat16* data, const Four& four) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(four.x[0], four.x[1]);
  const __nv_bfloat162 high = __floats2bfloat162_rn(four.x[2], four.x[3]);
  uint2 raw;
  raw.x = *reinterpret_cast<const unsigned*>(&low);
  raw.y = *reinterpret_cast<const unsigned*>(&high);
  *reinterpret_cast<uint2*>(data) = raw;
}

}  // namespace gala
