#include "gala/method/kalman.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gala/method/ranges.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {

KalmanAfterStep::KalmanAfterStep(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "after step kalman", options);
}

void KalmanAfterStep::after(const StepView& view, const StepRecord&) {
  constexpr double kPublishedSize = 38400, kLeast = 0.89, kNearlyOne = 0.9999;
  if (!hidden_.defined()) hidden_ = view.source.clone();
  std::int64_t count = 0;
  for (const Layer& layer : view.layers.layers) count += layer.count;
  const double noise = std::min(1.0, options_.noise * static_cast<double>(count) / kPublishedSize);
  hidden_.mul_(options_.alpha).add_(view.source, 1 - options_.alpha);
  variance_ = options_.alpha * options_.alpha * variance_ + noise;
  const double rest = 1 - noise;
  double beta = std::max(rest / (variance_ + rest), kLeast);
  if (beta >= kNearlyOne) beta = 1;
  variance_ *= beta;
  const at::Tensor& values = view.parameters.values();
  hidden_.mul_(beta).add_(values, 1 - beta);
  values.mul_(options_.gamma).add_(hidden_, 1 - options_.gamma);
}

void KalmanAfterStep::reset() {
  hidden_.reset();
  variance_ = 0;
}

void KalmanAfterStep::remember(StateArchive& archive) {
  bool begun = hidden_.defined();
  archive.value("kalman_begun", begun);
  archive.value("kalman_variance", variance_);
  if (!begun) {
    hidden_.reset();
    return;
  }
  if (!hidden_.defined()) hidden_ = archive.make_tensor();
  archive.buffer("kalman/", hold(hidden_));
}

}  // namespace gala
