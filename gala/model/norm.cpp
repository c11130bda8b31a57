#include "gala/model/norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <array>
#include <tuple>

#include "gala/base/error.h"
#include "gala/model/balanced_norm.h"
#include "gala/model/cuda_norm.h"
#include "gala/model/shared_norm.h"

namespace gala {
namespace {

bool use_cudnn() {
  return at::globalContext().userEnabledCuDNN();
}

/// Moves the running statistics towards those of `input`; the variance is the unbiased one, as in
/// PyTorch. A single value a channel has no variance: then only the mean moves.
void move_statistics(const at::Tensor& input, at::Tensor& running_mean, at::Tensor& running_var,
                     double momentum) {
  const at::NoGradGuard no_grad;
  const bool has_variance = input.numel() > input.size(1);
  const auto [variance, mean] =
      at::var_mean(input.detach().to(running_mean.scalar_type()), at::IntArrayRef{0, 2, 3},
                   at::Scalar(has_variance ? 1 : 0));
  // A broken picture must not stay in the statistics for ever.
  const at::Tensor usable = at::isfinite(mean).logical_and_(at::isfinite(variance));
  const auto move = [&](at::Tensor& running, const at::Tensor& batch) {
    running.copy_(at::where(usable, running.mul(1 - momentum).add_(batch, momentum), running));
  };
  move(running_mean, mean);
  if (has_variance) move(running_var, variance);
}

/// In place: backward of a norm needs its input, not its result.
at::Tensor finished(at::Tensor result, const NormEnd& end) {
  if (end.added.defined()) result.add_(end.added);
  if (end.relu) result.relu_();
  return result;
}

at::Tensor with_statistics(const at::Tensor& input, const at::Tensor& scale,
                           const at::Tensor& shift, const at::Tensor& mean,
                           const at::Tensor& variance, double epsilon, const NormEnd& end) {
  if (at::Tensor result = cuda_norm(input, scale, shift, mean, variance, epsilon, end);
      result.defined()) {
    return result;
  }
  return finished(at::batch_norm(input, scale, shift, mean, variance, /*training=*/false,
                                 /*momentum=*/0, epsilon, use_cudnn()),
                  end);
}

at::Tensor with_batch_statistics(const at::Tensor& input, const at::Tensor& scale,
                                 const at::Tensor& shift, double epsilon) {
  return at::batch_norm(input, scale, shift, {}, {}, /*training=*/true, /*momentum=*/0, epsilon,
                        use_cudnn());
}

using Statistics = NormStatistics;

/// Those of the batch, with the biased variance; of its first images alone where `counted` is defined.
Statistics of_batch(const at::Tensor& input, at::ScalarType type, const at::Tensor& counted) {
  const at::Tensor values = input.to(type);
  constexpr std::array<std::int64_t, 3> places = {0, 2, 3};
  if (!counted.defined()) {
    const auto [variance, mean] = at::var_mean(values, places, at::Scalar(0));
    return {mean, variance};
  }
  const at::Tensor inside =
      at::arange(input.size(0), counted.options()).lt(counted).view({-1, 1, 1, 1});
  const at::Tensor number = (counted.clamp_min(1) * (input.size(2) * input.size(3))).to(type);
  const auto mean_of = [&](const at::Tensor& all) {
    return at::where(inside, all, at::zeros({}, all.options())).sum(places) / number;
  };
  const at::Tensor mean = mean_of(values);
  return {mean, mean_of((values - mean.view({1, -1, 1, 1})).square())};
}

/// weight · batch + (1 - weight) · running, differentiable in the input.
Statistics blended(const at::Tensor& input, const at::Tensor& running_mean,
                   const at::Tensor& running_var, double weight, const at::Tensor& counted) {
  const Statistics batch = of_batch(input, running_mean.scalar_type(), counted);
  return {batch.mean * weight + running_mean * (1 - weight),
          batch.variance * weight + running_var * (1 - weight)};
}

at::Tensor normalised(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                      const Statistics& statistics, double epsilon) {
  const at::Tensor factor = scale * at::rsqrt(statistics.variance + epsilon);
  const at::Tensor offset = shift - statistics.mean * factor;
  return at::addcmul(offset.view({1, -1, 1, 1}), input, factor.view({1, -1, 1, 1}));
}

/// The same by the batch's own statistics, which lie so near its values that the mean is taken off first.
at::Tensor counted_norm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                        double epsilon, const at::Tensor& counted) {
  const Statistics batch = of_batch(input, scale.scalar_type(), counted);
  const auto wide = [](const at::Tensor& channels) { return channels.view({1, -1, 1, 1}); };
  const at::Tensor factor = scale * at::rsqrt(batch.variance + epsilon);
  return (input - wide(batch.mean)) * wide(factor) + wide(shift);
}

/// Running statistics that take the batch in and are used at once.
Statistics moved(const at::Tensor& input, at::Tensor& running_mean, at::Tensor& running_var,
                 double momentum) {
  const Statistics next = blended(input, running_mean, running_var, momentum, /*counted=*/{});
  const at::NoGradGuard no_grad;
  const at::Tensor usable = at::isfinite(next.mean).logical_and_(at::isfinite(next.variance));
  running_mean.copy_(at::where(usable, next.mean, running_mean));
  running_var.copy_(at::where(usable, next.variance, running_var));
  return next;
}

at::Tensor mixed(const at::Tensor& from, const at::Tensor& to, const at::Tensor& share) {
  return from + (to - from) * share;
}

/// The share of a batch in running statistics, by channel: 0 where it is not finite.
at::Tensor share_of(const Statistics& batch, std::int64_t images, double horizon,
                    const at::Tensor& counted, const at::Tensor& spread) {
  const at::NoGradGuard no_grad;
  const at::Tensor usable = at::isfinite(batch.mean).logical_and(at::isfinite(batch.variance));
  const at::Tensor share = counted.defined()
                               ? at::zeros_like(batch.mean).add(counted).div(horizon)
                               : at::full_like(batch.mean, static_cast<double>(images) / horizon);
  return (spread.defined() ? share / spread : share).clamp_max(1) * usable;
}

/// How much of `current` is used in place of `source`.
at::Tensor weight_of(const Statistics& current, const Statistics& source, double tolerance,
                     double epsilon) {
  const at::NoGradGuard no_grad;
  const at::Tensor wide = source.variance + epsilon;
  const at::Tensor apart = (current.mean - source.mean).square() / wide;
  const at::Tensor ratio = ((current.variance + epsilon) / wide).log();
  const at::Tensor distance = (apart + ratio.square() * 0.5).mean();
  return tolerance > 0 ? distance / (distance + tolerance) : at::ones_like(distance);
}

/// Takes the batch into the running statistics, and mixes those with the source's by their distance.
Statistics adapted(const at::Tensor& input, at::Tensor& running_mean, at::Tensor& running_var,
                   const NormMode& mode, double epsilon, bool update_statistics,
                   const at::Tensor& counted, const NormSource& known) {
  const Statistics running{running_mean.clone(), running_var.clone()};
  const Statistics source = known.mean.defined() ? Statistics{known.mean, known.variance} : running;
  const Statistics batch = of_batch(input, running_mean.scalar_type(), counted);
  const at::Tensor share = share_of(batch, input.size(0), mode.horizon, counted, known.spread);
  // What is not finite would stay so, also times 0.
  const auto finite = [](const at::Tensor& all) { return at::nan_to_num(all, 0.0, 0.0, 0.0); };
  const Statistics next{mixed(running.mean, finite(batch.mean), share),
                        mixed(running.variance, finite(batch.variance), share)};
  if (update_statistics) {
    const at::NoGradGuard no_grad;
    running_mean.copy_(next.mean);
    running_var.copy_(next.variance);
  }
  const at::Tensor weight = weight_of(next, source, mode.tolerance, epsilon);
  if (known.used) known.used->push_back(weight);
  return {mixed(source.mean, next.mean, weight), mixed(source.variance, next.variance, weight)};
}

/// Statistics of the classes that take the batch in, mixed.
Statistics balanced(const at::Tensor& input, at::Tensor& running_mean, at::Tensor& running_var,
                    const NormMode& mode, const NormSource& known) {
  if (!known.labels.defined() || !known.class_mean.defined()) {
    fail("norm mode balanced needs the statistics of each class and the classes of the images");
  }
  Statistics classes{known.class_mean, known.class_variance}, running{running_mean, running_var};
  return balanced_statistics(input, known.labels, classes, running, mode.momentum, mode.common);
}

at::Tensor while_training(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                          at::Tensor& running_mean, at::Tensor& running_var, double momentum,
                          double epsilon) {
  if (input.numel() == input.size(1)) {
    // PyTorch's own update would divide by zero here.
    move_statistics(input, running_mean, running_var, momentum);
    return with_batch_statistics(input, scale, shift, epsilon);
  }
  return at::batch_norm(input, scale, shift, running_mean, running_var, /*training=*/true, momentum,
                        epsilon, use_cudnn());
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                      at::Tensor& running_mean, at::Tensor& running_var, const NormMode& mode,
                      double epsilon, bool update_statistics, const NormEnd& end,
                      const at::Tensor& counted, const NormSource& source,
                      ProcessGroup* processes) {
  switch (mode.kind) {
    case NormKind::kSource:
      return with_statistics(input, scale, shift, running_mean, running_var, epsilon, end);
    case NormKind::kBatch:
      if (at::Tensor result = cuda_batch_norm(input, scale, shift, epsilon, end, counted);
          result.defined()) {
        return result;
      }
      return finished(counted.defined() ? counted_norm(input, scale, shift, epsilon, counted)
                                        : with_batch_statistics(input, scale, shift, epsilon),
                      end);
    case NormKind::kBlend:
      return finished(
          normalised(input, scale, shift,
                     blended(input, running_mean, running_var, mode.weight, counted), epsilon),
          end);
    case NormKind::kRunning:
      if (mode.gradient && update_statistics) {
        return finished(normalised(input, scale, shift,
                                   moved(input, running_mean, running_var, mode.momentum), epsilon),
                        end);
      }
      if (update_statistics) move_statistics(input, running_mean, running_var, mode.momentum);
      // Copies, since backward needs these values even if another batch passes before it.
      return with_statistics(input, scale, shift, running_mean.clone(), running_var.clone(),
                             epsilon, end);
    case NormKind::kAdaptive:
      if (at::Tensor result =
              cuda_adaptive_norm(input, scale, shift, running_mean, running_var, mode, epsilon,
                                 update_statistics, end, counted, source);
          result.defined()) {
        return result;
      }
      return finished(normalised(input, scale, shift,
                                 adapted(input, running_mean, running_var, mode, epsilon,
                                         update_statistics, counted, source),
                                 epsilon),
                      end);
    case NormKind::kBalanced:
      if (!update_statistics) {
        return with_statistics(input, scale, shift, running_mean.clone(), running_var.clone(),
                               epsilon, end);
      }
      return finished(normalised(input, scale, shift,
                                 balanced(input, running_mean, running_var, mode, source), epsilon),
                      end);
    case NormKind::kTraining:
      if (processes) {
        return finished(shared_batch_norm(input, scale, shift, running_mean, running_var,
                                          mode.momentum, epsilon, update_statistics, *processes),
                        end);
      }
      return finished(update_statistics ? while_training(input, scale, shift, running_mean,
                                                         running_var, mode.momentum, epsilon)
                                        : with_batch_statistics(input, scale, shift, epsilon),
                      end);
  }
  fail("norm mode {} does not exist", static_cast<int>(mode.kind));
}

}  // namespace gala
