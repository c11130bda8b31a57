#include "gala/loss/class_mean.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstdint>

namespace gala {

void ClassMean::prepare(const at::Tensor& probabilities) {
  if (mean_.defined()) return;
  const auto options = probabilities.options().requires_grad(false);
  mean_ = at::zeros({probabilities.size(1)}, options);
  known_ = at::zeros({}, options);
  reset();
}

at::Tensor ClassMean::cosine(const at::Tensor& probabilities) const {
  return at::cosine_similarity(mean_.unsqueeze(0), probabilities, 1) * known_;
}

void ClassMean::take(const at::Tensor& probabilities, const at::Tensor& kept) {
  const at::Tensor count = kept.sum();
  const at::Tensor fresh = (probabilities * kept.unsqueeze(1)).sum(0) / count.clamp_min(1);
  const at::Tensor moved = at::where(known_.ne(0), mean_ * keep_ + fresh * (1 - keep_), fresh);
  const at::Tensor sound = at::isfinite(fresh).all().logical_and(count.gt(0));
  mean_.copy_(at::where(sound, moved, mean_));
  known_.copy_(at::where(sound, at::ones_like(known_), known_));
}

void ClassMean::reset() {
  if (!mean_.defined()) return;
  const c10::NoGradGuard no_grad;
  mean_.fill_(even_ ? 1.0 / static_cast<double>(mean_.size(0)) : 0.0);
  known_.fill_(even_ ? 1 : 0);
}

void ClassMean::remember(const std::string& name, StateArchive& archive) {
  // Before the first batch there is nothing to tell, nor a place to put what is told.
  std::int64_t classes = mean_.defined() ? mean_.size(0) : 0;
  archive.value(name + "_classes", classes);
  if (archive.loads() && classes > 0 && !mean_.defined()) {
    prepare(at::zeros({1, classes}, archive.options()));
  }
  if (classes == 0) return reset();
  archive.tensor(name + "_mean", mean_);
  archive.tensor(name + "_known", known_);
}

}  // namespace gala
