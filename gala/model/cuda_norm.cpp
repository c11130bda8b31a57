// GCC 13 takes an empty vector inside LibTorch's function template for an overflow.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
#include "gala/model/cuda_norm.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gala/model/cuda_norm_kernels.h"

namespace gala {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

NormShape shape_of(const at::Tensor& maps, double epsilon) {
  return {maps.numel() / maps.size(1), maps.size(1), static_cast<float>(epsilon)};
}

NormParameters parameters_of(const at::Tensor& scale, const at::Tensor& shift,
                             const at::Tensor& mean, const at::Tensor& variance) {
  return {scale.const_data_ptr<float>(), shift.defined() ? shift.const_data_ptr<float>() : nullptr,
          mean.const_data_ptr<float>(), variance.const_data_ptr<float>()};
}

cudaStream_t stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

/// Calls `use` with a null pointer of the kernels' type for the maps.
template <class Use>
void with_type(const at::Tensor& maps, const Use& use) {
  if (maps.scalar_type() == at::kFloat) {
    use(static_cast<float*>(nullptr));
  } else {
    use(static_cast<__nv_bfloat16*>(nullptr));
  }
}

struct FixedNorm : torch::autograd::Function<FixedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& scale, const at::Tensor& shift,
                            const at::Tensor& mean, const at::Tensor& variance, double epsilon) {
    context->save_for_backward({input, scale, mean, variance});
    context->saved_data["epsilon"] = epsilon;
    at::Tensor output = at::empty_like(input);
    const c10::cuda::CUDAGuard guard(input.device());
    with_type(input, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      queue_norm(shape_of(input, epsilon), parameters_of(scale, shift, mean, variance),
                 static_cast<const T*>(input.const_data_ptr()),
                 static_cast<T*>(output.mutable_data_ptr()), stream_of(input));
    });
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &scale = saved[1], &mean = saved[2], &variance = saved[3];
    const NormShape shape = shape_of(input, context->saved_data["epsilon"].toDouble());
    const at::Tensor given = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor parts =
        at::empty({norm_parts(shape), 2, shape.channels}, input.options().dtype(at::kFloat));
    at::Tensor input_gradient = at::empty_like(input);
    at::Tensor scale_gradient = at::empty_like(scale), shift_gradient = at::empty_like(scale);
    const c10::cuda::CUDAGuard guard(input.device());
    with_type(input, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      queue_norm_backward(shape, parameters_of(scale, {}, mean, variance),
                          static_cast<const T*>(input.const_data_ptr()),
                          static_cast<const T*>(given.const_data_ptr()),
                          static_cast<T*>(input_gradient.mutable_data_ptr()),
                          parts.mutable_data_ptr<float>(), scale_gradient.mutable_data_ptr<float>(),
                          shift_gradient.mutable_data_ptr<float>(), stream_of(input));
    });
    return {input_gradient, scale_gradient, shift_gradient, {}, {}, {}};
  }
};

/// A vector of floats whose memory the kernels can read four at a time.
bool fits(const at::Tensor& vector) {
  return vector.scalar_type() == at::kFloat && vector.is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(vector.const_data_ptr()) % 16 == 0;
}

}  // namespace

at::Tensor cuda_norm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                     const at::Tensor& mean, const at::Tensor& variance, double epsilon) {
  if (!input.is_cuda() || input.dim() != 4 || input.size(1) % 4 != 0 ||
      !input.is_contiguous(at::MemoryFormat::ChannelsLast)) {
    return {};
  }
  if (input.scalar_type() != at::kFloat && input.scalar_type() != at::kBFloat16) return {};
  if (!fits(scale) || !fits(shift) || !fits(mean) || !fits(variance)) return {};
  return FixedNorm::apply(input, scale, shift, mean, variance, epsilon);
}

}  // namespace gala
