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

NormCount count_of(const at::Tensor& input, const at::Tensor& counted) {
  return {counted.defined() ? counted.const_data_ptr<std::int64_t>() : nullptr,
          input.size(2) * input.size(3)};
}

/// Room for the parts of sums over places.
at::Tensor make_parts(const at::Tensor& input, const NormShape& shape) {
  return at::empty({norm_parts(shape), 2, shape.channels}, input.options().dtype(at::kFloat));
}

/// Where no statistics are given, they are those of the maps: of the images that count. Those that are given may follow
/// the maps' own: then it is told how (NormPull).
struct FusedNorm : torch::autograd::Function<FusedNorm> {
  using Optional = std::optional<at::Tensor>;  // LibTorch takes no undefined tensor for an argument

  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& scale, const at::Tensor& shift,
                            const Optional& what_is_added, const Optional& given_mean,
                            const Optional& given_variance, const Optional& pull_mean,
                            const Optional& pull_share, const Optional& number, double epsilon,
                            bool relu) {
    const at::Tensor added = what_is_added.value_or(at::Tensor());
    const at::Tensor counted = number.value_or(at::Tensor());
    const bool own = !given_mean.has_value();
    const at::Tensor mean = own ? at::empty_like(scale) : *given_mean;
    const at::Tensor variance = own ? at::empty_like(scale) : *given_variance;
    const Maps maps{.input = input, .output = at::empty_like(input), .added = added, .relu = relu};
    const NormShape shape = shape_of(input, epsilon);
    const c10::cuda::CUDAGuard guard(input.device());
    maps.give([&](const auto& addresses) {
      if (own) {
        queue_norm_statistics(shape, count_of(input, counted), addresses.input,
                              make_parts(input, shape).template mutable_data_ptr<float>(),
                              mean.mutable_data_ptr<float>(), variance.mutable_data_ptr<float>(),
                              stream_of(input));
      }
      queue_norm(shape, parameters_of(scale, shift, mean, variance), addresses, stream_of(input));
    });
    const bool reads_output = relu && added.defined();
    context->save_for_backward(
        {input, scale, shift, mean, variance, reads_output ? maps.output : at::Tensor(), counted,
         pull_mean.value_or(at::Tensor()), pull_share.value_or(at::Tensor())});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["relu"] = relu;
    context->saved_data["adds"] = added.defined();
    context->saved_data["own"] = own;
    return maps.output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &scale = saved[1], &shift = saved[2], &mean = saved[3],
                     &variance = saved[4], &counted = saved[6];
    NormPull pull;
    if (saved[7].defined()) {
      pull = {saved[7].const_data_ptr<float>(), saved[8].const_data_ptr<float>()};
    }
    const NormShape shape = shape_of(input, context->saved_data["epsilon"].toDouble());
    const bool relu = context->saved_data["relu"].toBool();
    const bool adds = context->saved_data["adds"].toBool();
    const bool own = context->saved_data["own"].toBool();
    const at::Tensor output_gradient = for_kernels(gradients[0]);
    const Maps maps{.input = input,
                    .output = saved[5],
                    .output_gradient = output_gradient,
                    .input_gradient = at::empty_like(input),
                    .added_gradient = relu && adds ? at::empty_like(input) : at::Tensor(),
                    .relu = relu};
    const at::Tensor parts = make_parts(input, shape);
    const at::Tensor scale_gradient = at::empty_like(scale), shift_gradient = at::empty_like(scale);
    const c10::cuda::CUDAGuard guard(input.device());
    const NormParameters parameters = parameters_of(scale, shift, mean, variance);
    maps.give([&](const auto& addresses) {
      auto* for_parts = parts.mutable_data_ptr<float>();
      auto* for_scale = scale_gradient.mutable_data_ptr<float>();
      auto* for_shift = shift_gradient.mutable_data_ptr<float>();
      if (own || pull.mean) {
        queue_batch_norm_backward(shape, count_of(input, counted), parameters, pull, addresses,
                                  for_parts, for_scale, for_shift, stream_of(input));
      } else {
        queue_norm_backward(shape, parameters, addresses, for_parts, for_scale, for_shift,
                            stream_of(input));
      }
    });
    at::Tensor added_gradient;
    if (adds) added_gradient = relu ? maps.added_gradient : maps.output_gradient;
    return {maps.input_gradient,
            scale_gradient,
            shift_gradient,
            added_gradient,
            {},
            {},
            {},
            {},
            {},
            {},
            {}};
  }
};

bool fits(const at::Tensor& vector) {
  return vector.scalar_type() == at::kFloat && vector.is_contiguous() && is_aligned(vector);
}

bool fits(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
          const NormEnd& end) {
  return kernels_take(input) && fits(scale) && fits(shift) &&
         (!end.added.defined() || (end.added.scalar_type() == input.scalar_type() &&
                                   end.added.sizes() == input.sizes() && kernels_take(end.added)));
}

const FusedNorm::Optional kNone;

FusedNorm::Optional optional(const at::Tensor& tensor) {
  return tensor.defined() ? FusedNorm::Optional(tensor) : std::nullopt;
}

}  // namespace

at::Tensor cuda_norm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                     const at::Tensor& mean, const at::Tensor& variance, double epsilon,
                     const NormEnd& end) {
  if (!fits(input, scale, shift, end) || !fits(mean) || !fits(variance)) return {};
  return FusedNorm::apply(input, scale, shift, optional(end.added), optional(mean),
                          optional(variance), kNone, kNone, kNone, epsilon, end.relu);
}

at::Tensor cuda_batch_norm(const at::Tensor& input, const at::Tensor& scale,
                           const at::Tensor& shift, double epsilon, const NormEnd& end,
                           const at::Tensor& counted) {
  if (!fits(input, scale, shift, end)) return {};
  return FusedNorm::apply(input, scale, shift, optional(end.added), kNone, kNone, kNone, kNone,
                          optional(counted), epsilon, end.relu);
}

at::Tensor cuda_adaptive_norm(const at::Tensor& input, const at::Tensor& scale,
                              const at::Tensor& shift, const at::Tensor& running_mean,
                              const at::Tensor& running_var, const NormMode& mode, double epsilon,
                              bool update_statistics, const NormEnd& end, const at::Tensor& counted,
                              const NormSource& source) {
  if (!fits(input, scale, shift, end) || !fits(running_mean) || !fits(running_var)) return {};
  const NormShape shape = shape_of(input, epsilon);
  const auto make = [&] { return at::empty({input.size(1)}, running_mean.options()); };
  const at::Tensor batch_mean = make(), batch_variance = make(), mean = make(), variance = make(),
                   pull = make(), weight = at::empty({}, running_mean.options());
  const auto address = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
  };
  const c10::cuda::CUDAGuard guard(input.device());
  Maps{.input = input}.give([&](const auto& addresses) {
    queue_norm_statistics(shape, count_of(input, counted), addresses.input,
                          make_parts(input, shape).template mutable_data_ptr<float>(),
                          batch_mean.mutable_data_ptr<float>(),
                          batch_variance.mutable_data_ptr<float>(), stream_of(input));
  });
  queue_norm_adaption({.channels = input.size(1),
                       .epsilon = shape.epsilon,
                       .tolerance = static_cast<float>(mode.tolerance),
                       .images = static_cast<float>(input.size(0)),
                       .horizon = static_cast<float>(mode.horizon),
                       .counted = count_of(input, counted).images,
                       .spread = address(source.spread),
                       .update = update_statistics,
                       .batch_mean = address(batch_mean),
                       .batch_variance = address(batch_variance),
                       .running_mean = running_mean.mutable_data_ptr<float>(),
                       .running_variance = running_var.mutable_data_ptr<float>(),
                       .source_mean = address(source.mean),
                       .source_variance = address(source.variance),
                       .mean = mean.mutable_data_ptr<float>(),
                       .variance = variance.mutable_data_ptr<float>(),
                       .pull = pull.mutable_data_ptr<float>(),
                       .weight = weight.mutable_data_ptr<float>()},
                      stream_of(input));
  if (source.used) source.used->push_back(weight);
  return FusedNorm::apply(input, scale, shift, optional(end.added), optional(mean),
                          optional(variance), optional(batch_mean), optional(pull),
                          optional(counted), epsilon, end.relu);
}

}  // namespace gala
