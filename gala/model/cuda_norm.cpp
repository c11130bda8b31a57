#include "gala/model/cuda_norm.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>

#include "gala/model/cuda_maps.h"
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
  return {scale.const_data_ptr<float>(), shift.const_data_ptr<float>(),
          mean.const_data_ptr<float>(), variance.const_data_ptr<float>()};
}

/// The same for every type of maps; what is undefined has no address.
struct Maps {
  at::Tensor input = {}, output = {}, added = {};
  at::Tensor output_gradient = {}, input_gradient = {}, added_gradient = {};
  bool relu = false;

  /// Calls `use` with the addresses in the kernels' type.
  template <class Use>
  void give(const Use& use) const {
    with_type(input, [&]<class T>(T*) { use(addresses<T>()); });
  }

 private:
  template <class T>
  static T* address(const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<T*>(tensor.data_ptr()) : nullptr;
  }
  template <class T>
  NormMaps<T> addresses() const {
    return {address<T>(input),
            address<T>(output),
            address<T>(added),
            address<T>(output_gradient),
            address<T>(input_gradient),
            address<T>(added_gradient),
            relu};
  }
};

struct FixedNorm : torch::autograd::Function<FixedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& scale, const at::Tensor& shift,
                            const std::optional<at::Tensor>& what_is_added, const at::Tensor& mean,
                            const at::Tensor& variance, double epsilon, bool relu) {
    const at::Tensor added = what_is_added.value_or(at::Tensor());
    const Maps maps{.input = input, .output = at::empty_like(input), .added = added, .relu = relu};
    const c10::cuda::CUDAGuard guard(input.device());
    maps.give([&](const auto& addresses) {
      queue_norm(shape_of(input, epsilon), parameters_of(scale, shift, mean, variance), addresses,
                 stream_of(input));
    });
    const bool reads_output = relu && added.defined();
    context->save_for_backward(
        {input, scale, shift, mean, variance, reads_output ? maps.output : at::Tensor()});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["relu"] = relu;
    context->saved_data["adds"] = added.defined();
    return maps.output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &scale = saved[1], &shift = saved[2], &mean = saved[3],
                     &variance = saved[4];
    const NormShape shape = shape_of(input, context->saved_data["epsilon"].toDouble());
    const bool relu = context->saved_data["relu"].toBool();
    const bool adds = context->saved_data["adds"].toBool();
    const at::Tensor output_gradient = for_kernels(gradients[0]);
    const Maps maps{.input = input,
                    .output = saved[5],
                    .output_gradient = output_gradient,
                    .input_gradient = at::empty_like(input),
                    .added_gradient = relu && adds ? at::empty_like(input) : at::Tensor(),
                    .relu = relu};
    const at::Tensor parts =
        at::empty({norm_parts(shape), 2, shape.channels}, input.options().dtype(at::kFloat));
    const at::Tensor scale_gradient = at::empty_like(scale), shift_gradient = at::empty_like(scale);
    const c10::cuda::CUDAGuard guard(input.device());
    maps.give([&](const auto& addresses) {
      queue_norm_backward(shape, parameters_of(scale, shift, mean, variance), addresses,
                          parts.mutable_data_ptr<float>(), scale_gradient.mutable_data_ptr<float>(),
                          shift_gradient.mutable_data_ptr<float>(), stream_of(input));
    });
    at::Tensor added_gradient;
    if (adds) added_gradient = relu ? maps.added_gradient : maps.output_gradient;
    return {maps.input_gradient, scale_gradient, shift_gradient, added_gradient, {}, {}, {}, {}};
  }
};

bool fits(const at::Tensor& vector) {
  return vector.scalar_type() == at::kFloat && vector.is_contiguous() && is_aligned(vector);
}

}  // namespace

at::Tensor cuda_norm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                     const at::Tensor& mean, const at::Tensor& variance, double epsilon,
                     const NormEnd& end) {
  if (!kernels_take(input)) return {};
  if (!fits(scale) || !fits(shift) || !fits(mean) || !fits(variance)) return {};
  if (end.added.defined() && (end.added.scalar_type() != input.scalar_type() ||
                              end.added.sizes() != input.sizes() || !kernels_take(end.added))) {
    return {};
  }
  // LibTorch takes no undefined tensor for an argument.
  const std::optional<at::Tensor> added =
      end.added.defined() ? std::optional(end.added) : std::nullopt;
  return FixedNorm::apply(input, scale, shift, added, mean, variance, epsilon, end.relu);
}

}  // namespace gala
