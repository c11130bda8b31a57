#include "gala/method/drift.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/base/error.h"
#include "gala/method/ranges.h"

namespace gala {
namespace {

/// [classes, N], 1 where an image was answered with a class; images without a finite answer are in none.
at::Tensor membership(const Output& output) {
  const at::Tensor sound =
      at::isfinite(output.logits).all(1).logical_and(at::isfinite(output.features).all(1));
  const at::Tensor classes =
      at::arange(output.logits.size(1), output.logits.options().dtype(at::kLong));
  return classes.unsqueeze(1)
      .eq(output.logits.argmax(1).unsqueeze(0))
      .logical_and(sound.unsqueeze(0))
      .to(at::kFloat);
}

at::Tensor sound_features(const Output& output) {
  return at::nan_to_num(output.features.to(at::kFloat), 0, 0, 0);
}

}  // namespace

FeatureDrift::FeatureDrift(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "drift features", options);
}

void FeatureDrift::learn(Model& model, const SourceImages& images) {
  const c10::NoGradGuard no_grad;
  const NormMode mode = model.norm_mode();
  model.set_norm_mode({});
  at::Tensor count, sum, squares;  // in double: the variance is a small difference of large sums
  for (at::Tensor batch = images(); batch.defined(); batch = images()) {
    const Output output = model.forward(batch.to(model.device()), /*update_statistics=*/false);
    const at::Tensor in = membership(output).to(at::kDouble);
    const at::Tensor features = sound_features(output).to(at::kDouble);
    const auto add = [](at::Tensor& total, const at::Tensor& part) {
      total = total.defined() ? total + part : part;
    };
    add(count, in.sum(1));
    add(sum, at::matmul(in, features));
    add(squares, at::matmul(in, features * features));
  }
  model.set_norm_mode(mode);
  if (!count.defined()) fail<ConfigError>("drift features: there are no images of the source");
  const at::Tensor many = count.unsqueeze(1), mean = sum / many.clamp_min(1);
  known_ = count.ge(2).to(at::kFloat);
  if (known_.sum().item<double>() == 0) {
    fail<ConfigError>(
        "drift features: the source model answers its own images with no class twice; more of them "
        "are "
        "needed");
  }
  mean_ = mean.to(at::kFloat);
  variance_ =
      ((squares - many * mean * mean) / (many - 1).clamp_min(1)).clamp_min(0).to(at::kFloat);
  moving_ = mean_.clone();
  value_ = at::zeros({}, mean_.options());
}

void FeatureDrift::observe(const Output& answered) {
  const c10::NoGradGuard no_grad;
  const at::Tensor in = membership(answered), count = in.sum(1);
  const at::Tensor seen = count.gt(0).to(at::kFloat) * known_;
  const at::Tensor far = (moving_ - mean_).square_().div_(variance_ + 1e-6).mean(1);
  const at::Tensor mean = (far * seen).sum() / seen.sum().clamp_min(1);
  value_.copy_(1 - at::exp(-mean));
  const at::Tensor batch =
      at::matmul(in, sound_features(answered)) / count.clamp_min(1).unsqueeze(1);
  const at::Tensor moved = moving_ * options_.keep + batch * (1 - options_.keep);
  moving_.copy_(at::where(seen.unsqueeze(1).gt(0), moved, moving_));
}

void FeatureDrift::reset() {
  if (!mean_.defined()) return;
  const c10::NoGradGuard no_grad;
  moving_.copy_(mean_);
  value_.zero_();
}

void FeatureDrift::remember(StateArchive& archive) {
  if (!mean_.defined()) return;  // where nothing moves, nothing was learned
  archive.tensor("drift_mean", mean_);
  archive.tensor("drift_variance", variance_);
  archive.tensor("drift_known", known_);
  archive.tensor("drift_moving", moving_);
  archive.tensor("drift_value", value_);
}

}  // namespace gala
