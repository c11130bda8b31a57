#include "gala/method/reset_rules.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <vector>

#include "gala/base/error.h"

namespace gala {
namespace {

void check_share(std::string_view rule, std::string_view option, double value) {
  if (!(value >= 0 && value <= 1)) {
    fail<ConfigError>("reset rule {}: {} must lie in [0, 1], not {}", rule, option, value);
  }
}

}  // namespace

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
  if (options.steps < 1) {
    fail<ConfigError>("reset rule every: steps must be at least 1, not {}", options.steps);
  }
}

bool EveryReset::is_due(const StepRecord&, const at::Tensor&) {
  return ++steps_ >= options_.steps;
}

LossReset::LossReset(const Options& options) : options_(options), mean_(options.keep) {
  check_share("loss", "keep", options.keep);
}

bool LossReset::is_due(const StepRecord& record, const at::Tensor&) {
  return mean_.take(record.loss) < options_.below;
}

ConcentrationReset::ConcentrationReset(const Options& options)
    : options_(options), mean_(options.keep) {
  check_share("concentration", "above", options.above);
  check_share("concentration", "keep", options.keep);
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
