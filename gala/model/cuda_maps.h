#pragma once
// What the files that call kernels on maps have in common: functions of autograd, and tensors as the
// kernels want them.
//
// GCC 13 takes an empty vector inside LibTorch's function template for an overflow, wherever that is used: what it
// says of it is known, and the second word would stop a build.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

namespace gala {

/// Whether kernels can read its memory four numbers at a time.
inline bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
}

/// Maps on a GPU as our kernels want them: channels-last, float32 or bfloat16, channels in fours.
inline bool kernels_take(const at::Tensor& maps) {
  return maps.is_cuda() && maps.dim() == 4 && maps.numel() > 0 && maps.size(1) % 4 == 0 &&
         maps.is_contiguous(at::MemoryFormat::ChannelsLast) && is_aligned(maps) &&
         (maps.scalar_type() == at::kFloat || maps.scalar_type() == at::kBFloat16);
}

/// A gradient that LibTorch hands over, in the layout of its maps.
inline at::Tensor for_kernels(const at::Tensor& gradient) {
  const at::Tensor result = gradient.contiguous(at::MemoryFormat::ChannelsLast);
  return is_aligned(result) ? result : result.clone();
}

/// Calls `use` with a null pointer of the type in which the kernels see such maps.
template <class Use>
void with_type(const at::Tensor& maps, const Use& use) {
  if (maps.scalar_type() == at::kFloat) {
    use(static_cast<float*>(nullptr));
  } else {
    use(static_cast<__nv_bfloat16*>(nullptr));
  }
}

inline cudaStream_t stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

}  // namespace gala
