#include "gala/method/reset_rules.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <vector>

#include "gala/method/ranges.h"

namespace gala {

double MovingMean::take(double value) {
  mean_ = mean_ ? keep_ * *mean_ + (1 - keep_) * value : value;
  return *mean_;
}

void MovingMean::remember(StateArchive& archive, const char* name) {
  std::vector<double> values;
  if (mean_) values.push_back(*mean_);
  archive.value(name, values);
  mean_.reset();
  if (!values.empty()) mean_ = values.front();
}

EveryReset::EveryReset(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "reset rule every", options);
}

bool EveryReset::is_due(const StepRecord&, const at::Tensor&) {
  return ++steps_ >= options_.steps;
}

LossReset::LossReset(const Options& options) : options_(options), mean_(options.keep) {
  check_ranges(method_ranges(), "reset rule loss", options);
}

bool LossReset::is_due(const StepRecord& record, const at::Tensor&) {
  return mean_.take(record.loss) < options_.below;
}

ConcentrationReset::ConcentrationReset(const Options& options)
    : options_(options), mean_(options.keep) {
  check_ranges(method_ranges(), "reset rule concentration", options);
}

bool ConcentrationReset::is_due(const StepRecord&, const at::Tensor& logits) {
  const c10::NoGradGuard no_grad;
  const at::Tensor mean = at::softmax(logits.to(at::kDouble), 1).mean(0);
  const double entropy = -at::xlogy(mean, mean).sum().item<double>();
  const double concentration = 1 - entropy / std::log(static_cast<double>(logits.size(1)));
  if (!std::isfinite(concentration)) return false;
  return mean_.take(concentration) > options_.above;
}

}  // namespace gala
