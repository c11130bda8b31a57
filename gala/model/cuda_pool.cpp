#include "gala/model/cuda_pool.h"

#include <c10/core/GradMode.h>
#include <c10/cuda/CUDAGuard.h>

#include <limits>

#include "gala/model/cuda_maps.h"
#include "gala/model/cuda_pool_kernels.h"

namespace gala {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

PoolShape shape_of(at::IntArrayRef sizes) {
  const auto size = [&](std::size_t i) { return static_cast<std::uint32_t>(sizes[i]); };
  return {size(0), size(1), size(2), size(3)};
}

at::Tensor make_maps(at::IntArrayRef sizes, at::TensorOptions options) {
  return at::empty(sizes, options.memory_format(at::MemoryFormat::ChannelsLast));
}

at::Tensor output_for(const at::Tensor& input, at::TensorOptions options) {
  const PoolShape shape = shape_of(input.sizes());
  return make_maps({shape.images, shape.channels, shape.out_height(), shape.out_width()}, options);
}

/// Notes the places where they are defined.
at::Tensor pool(const at::Tensor& input, const at::Tensor& places) {
  at::Tensor output = output_for(input, input.options());
  const c10::cuda::CUDAGuard guard(input.device());
  with_type(input, [&]<class T>(T*) {
    queue_pool(shape_of(input.sizes()), static_cast<const T*>(input.const_data_ptr()),
               static_cast<T*>(output.mutable_data_ptr()),
               places.defined() ? places.mutable_data_ptr<std::uint8_t>() : nullptr,
               stream_of(input));
  });
  return output;
}

struct Pool : torch::autograd::Function<Pool> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input) {
    const at::Tensor places = output_for(input, input.options().dtype(at::kByte));
    context->save_for_backward({places});
    context->saved_data["sizes"] = input.sizes();
    return pool(input, places);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor places = context->get_saved_variables()[0];
    const at::Tensor output_gradient = for_kernels(gradients[0]);
    const std::vector<std::int64_t> sizes = context->saved_data["sizes"].toIntVector();
    at::Tensor input_gradient = make_maps(sizes, output_gradient.options());
    const c10::cuda::CUDAGuard guard(places.device());
    with_type(output_gradient, [&]<class T>(T*) {
      queue_pool_backward(shape_of(sizes), static_cast<const T*>(output_gradient.const_data_ptr()),
                          places.const_data_ptr<std::uint8_t>(),
                          static_cast<T*>(input_gradient.mutable_data_ptr()), stream_of(places));
    });
    return {input_gradient};
  }
};

}  // namespace

at::Tensor cuda_pool(const at::Tensor& input) {
  if (!kernels_take(input) || input.numel() > std::numeric_limits<std::int32_t>::max()) return {};
  return c10::GradMode::is_enabled() && input.requires_grad() ? Pool::apply(input)
                                                              : pool(input, {});
}

}  // namespace gala
