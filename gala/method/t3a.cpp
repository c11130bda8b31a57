#include "gala/method/t3a.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "gala/base/error.h"
#include "gala/loss/terms.h"
#include "gala/method/ranges.h"

namespace gala {

T3aReadout::T3aReadout(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "readout t3a", options);
}

void T3aReadout::attach(const Model& model) {
  for (const Parameter& parameter : model.parameters()) {
    if (!parameter.in_head()) continue;
    (parameter.value.dim() == 2 ? head_weight_ : head_bias_) = parameter.value.detach().clone();
  }
  if (!head_weight_.defined()) fail<ConfigError>("readout t3a: the network has no linear head");
  reset();
}

void T3aReadout::reset() {
  const c10::NoGradGuard no_grad;
  at::Tensor logits = at::matmul(head_weight_, head_weight_.t());
  if (head_bias_.defined()) logits = logits + head_bias_;
  features_ = head_weight_.clone();
  labels_ = logits.argmax(1);
  entropy_ = entropies(logits);
}

at::Tensor T3aReadout::correct(const Output& output) {
  const at::Tensor logits = output.logits.to(at::kFloat), features = output.features.to(at::kFloat);
  const at::Tensor sound = at::isfinite(logits).all(1).logical_and(at::isfinite(features).all(1));
  const at::Tensor rows = sound.nonzero().squeeze(1);
  const at::Tensor known = logits.index_select(0, rows);
  features_ = at::cat({features_, features.index_select(0, rows)});
  labels_ = at::cat({labels_, known.argmax(1)});
  entropy_ = at::cat({entropy_, entropies(known)});
  forget_unsure(logits.size(1));
  const auto unit = [](const at::Tensor& values) {
    return values / values.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
  };
  at::Tensor prototypes = at::zeros_like(head_weight_);
  prototypes.index_add_(0, labels_, unit(features_));
  const at::Tensor found = at::matmul(features, unit(prototypes).t());
  return at::where(sound.unsqueeze(1), found, logits).to(output.logits.scalar_type());
}

/// Of each class the `keep` of least entropy stay.
void T3aReadout::forget_unsure(std::int64_t classes) {
  if (options_.keep == 0) return;
  std::vector<at::Tensor> kept;
  for (std::int64_t c = 0; c < classes; ++c) {
    const at::Tensor of_class = labels_.eq(c).nonzero().squeeze(1);
    const at::Tensor order = std::get<1>(
        entropy_.index_select(0, of_class).sort(/*stable=*/true, /*dim=*/0, /*descending=*/false));
    kept.push_back(of_class.index_select(0, order.slice(0, 0, options_.keep)));
  }
  const at::Tensor rows = at::cat(kept);
  features_ = features_.index_select(0, rows);
  labels_ = labels_.index_select(0, rows);
  entropy_ = entropy_.index_select(0, rows);
}

void T3aReadout::remember(StateArchive& archive) {
  std::int64_t count = features_.size(0);
  archive.value("t3a_count", count);
  if (archive.loads()) {
    if (count < 0) fail("the state holds {} features", count);
    features_ = at::zeros({count, head_weight_.size(1)}, head_weight_.options());
    labels_ = at::zeros({count}, head_weight_.options().dtype(at::kLong));
    entropy_ = at::zeros({count}, head_weight_.options());
  }
  archive.tensor("t3a_features", features_);
  archive.tensor("t3a_labels", labels_);
  archive.tensor("t3a_entropy", entropy_);
}

}  // namespace gala
