#include "gala/model/balanced_norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <array>
#include <cstdint>

namespace gala {
namespace {

/// What the images of a batch are in one layer, class by class.
struct Members {
  at::Tensor mean, variance;  ///< of each image, [N, C]; 0 where it does not count
  at::Tensor of;              ///< [classes, N]: 1 where an image is of a class
};

Members members_of(const at::Tensor& input, const at::Tensor& labels, std::int64_t classes) {
  constexpr std::array<std::int64_t, 2> kPlaces = {2, 3};
  const auto [variance, mean] = at::var_mean(input, kPlaces, at::Scalar(0));
  const at::Tensor usable = labels.ge(0)
                                .logical_and(at::isfinite(mean).all(1))
                                .logical_and(at::isfinite(variance).all(1));
  const auto counting = [&](const at::Tensor& values) {
    return at::where(usable.unsqueeze(1), values, at::zeros({}, values.options())).to(at::kDouble);
  };
  const at::Tensor numbers = at::arange(classes, labels.options()).unsqueeze(1);
  return {counting(mean), counting(variance),
          numbers.eq(labels).logical_and(usable).to(at::kDouble)};
}

/// In place, but for what the type of the place cannot hold.
void take(at::Tensor& place, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  const at::Tensor rounded = values.detach().to(place.scalar_type());
  place.copy_(at::where(at::isfinite(rounded), rounded, place));
}

}  // namespace

NormStatistics balanced_statistics(const at::Tensor& input, const at::Tensor& labels,
                                   NormStatistics& classes, NormStatistics& running,
                                   double momentum, double common) {
  const auto copy = [](const at::Tensor& values) {
    return values.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  };
  const at::Tensor mean = copy(classes.mean), variance = copy(classes.variance);
  const at::ScalarType type = running.mean.scalar_type();
  const Members images = members_of(input.to(type), labels, mean.size(0));

  const at::Tensor number = images.of.sum(1, /*keepdim=*/true);
  const at::Tensor share = number.clamp_min(1).reciprocal().clamp_max(momentum);
  const at::Tensor apart = images.mean - mean.index_select(0, labels.clamp_min(0));
  const at::Tensor step = share * at::matmul(images.of, apart);
  const at::Tensor square = share * at::matmul(images.of, images.variance + apart.square());

  const at::Tensor present = number.gt(0).to(at::kDouble);
  const at::Tensor kinds = present.sum().clamp_min(1);
  const auto over_present = [&](const at::Tensor& values) {
    return (values * present).sum(0) / kinds;
  };
  const at::Tensor next_mean = mean + step * (1 - common) + over_present(step) * common;
  const at::Tensor alone =
      variance + (square - share * number * variance - step.square()) * (1 - common);
  const at::Tensor next_variance =
      alone +
      (over_present(square - step.square()) - over_present(share * number) * alone) * common;
  const at::Tensor all_mean = next_mean.mean(0);
  const at::Tensor all_variance = next_variance.mean(0) + next_mean.var(/*dim=*/0);
  take(classes.mean, next_mean);
  take(classes.variance, next_variance);
  take(running.mean, all_mean);
  take(running.variance, all_variance);
  return {all_mean.to(type), all_variance.to(type)};
}

}  // namespace gala
