#include "gala/model/shared_norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>

#include "gala/device/process_group.h"

namespace gala {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Statistics {
  at::Tensor mean, variance;  ///< float64, the variance biased
};

/// Those of all processes' images, which hold equally many: the variance within them and between them.
Statistics of_all(const at::Tensor& input, ProcessGroup& processes) {
  const auto [own_variance, own_mean] =
      at::var_mean(input.to(at::kFloat), at::IntArrayRef{0, 2, 3}, at::Scalar(0));
  const at::Tensor all = processes.gather(at::stack({own_mean, own_variance}).to(at::kDouble));
  const at::Tensor means = all.select(1, 0), variances = all.select(1, 1);
  const at::Tensor mean = means.mean(0);
  return {mean, variances.mean(0) + (means - mean).square().mean(0)};
}

void move(at::Tensor& running, const at::Tensor& batch, double momentum) {
  running.mul_(1 - momentum).add_(batch.to(running.scalar_type()), momentum);
}

struct SharedNorm : torch::autograd::Function<SharedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& scale, const at::Tensor& shift,
                            const at::Tensor& mean, const at::Tensor& variance, double epsilon,
                            std::int64_t processes) {
    context->save_for_backward({input, scale, mean, variance});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["processes"] = processes;
    return std::get<0>(at::native_batch_norm(input, scale, shift, mean, variance,
                                             /*training=*/false, /*momentum=*/0, epsilon));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &scale = saved[1], &mean = saved[2], &variance = saved[3];
    const double epsilon = context->saved_data["epsilon"].toDouble();
    auto& processes =
        *reinterpret_cast<ProcessGroup*>(context->saved_data["processes"].toInt());  // NOLINT
    const at::Tensor inverse = at::rsqrt(variance.to(at::kDouble) + epsilon);
    // With statistics that are constants, these are the first term of ∂x and both sums. A GPU takes them from where the
    // forward pass would have left the batch's own.
    auto [input_gradient, scale_gradient, shift_gradient] = at::native_batch_norm_backward(
        gradients[0].contiguous(input.suggest_memory_format()), input, scale, mean, variance, mean,
        inverse.to(mean.scalar_type()), /*train=*/false, epsilon, {true, true, true});
    at::Tensor sums = at::stack({scale_gradient, shift_gradient}).to(at::kDouble);
    processes.sum(sums);
    const auto values =
        static_cast<double>(input.numel() / input.size(1)) * static_cast<double>(processes.size());
    const at::Tensor slope = scale * inverse / values;
    const auto wide = [](const at::Tensor& channels) {
      return channels.to(at::kFloat).view({1, -1, 1, 1});
    };
    const at::Tensor pull = -slope * inverse * sums[0], offset = -slope * sums[1];
    const at::Tensor rest =
        at::addcmul(wide(offset), input.to(at::kFloat) - wide(mean), wide(pull));
    return {input_gradient.add_(rest), scale_gradient, shift_gradient, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor shared_batch_norm(const at::Tensor& input, const at::Tensor& scale,
                             const at::Tensor& shift, at::Tensor& running_mean,
                             at::Tensor& running_var, double momentum, double epsilon,
                             bool update_statistics, ProcessGroup& processes) {
  Statistics batch;
  {
    const at::NoGradGuard no_grad;
    batch = of_all(input.detach(), processes);
    if (update_statistics) {
      const auto values = static_cast<double>(input.numel() / input.size(1)) *
                          static_cast<double>(processes.size());
      move(running_mean, batch.mean, momentum);
      move(running_var, batch.variance * (values / (values - 1)), momentum);
    }
  }
  const at::ScalarType type = running_mean.scalar_type();
  return SharedNorm::apply(input, scale, shift, batch.mean.to(type), batch.variance.to(type),
                           epsilon, reinterpret_cast<std::int64_t>(&processes));
}

}  // namespace gala
