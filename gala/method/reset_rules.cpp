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

/// Takes a number into a moving mean, which begins with the first one.
double moved(std::optional<double>& mean, double value, double keep) {
  mean = mean ? keep * *mean + (1 - keep) * value : value;
  return *mean;
}

void remember_mean(StateArchive& archive, const char* name, std::optional<double>& mean) {
  std::vector<double> values;
  if (mean) values.push_back(*mean);
  archive.value(name, values);
  mean.reset();
  if (!values.empty()) mean = values.front();
}

}  // namespace

EveryReset::EveryReset(const Options& options) : options_(options) {
  if (options.steps < 1) {
    fail<ConfigError>("reset rule every: steps must be at least 1, not {}", options.steps);
  }
}

bool EveryReset::is_due(const StepRecord&, const at::Tensor&) {
  return ++steps_ >= options_.steps;
}

LossReset::LossReset(const Options& options) : options_(options) {
  check_share("loss", "keep", options.keep);
}

bool LossReset::is_due(const StepRecord& record, const at::Tensor&) {
  return moved(mean_, record.loss, options_.keep) < options_.below;
}

void LossReset::remember(StateArchive& archive) {
  remember_mean(archive, "reset_loss_mean", mean_);
}

ConcentrationReset::ConcentrationReset(const Options& options) : options_(options) {
  check_share("concentration", "above", options.above);
  check_share("concentration", "keep", options.keep);
}

bool ConcentrationReset::is_due(const StepRecord&, const at::Tensor& logits) {
  const c10::NoGradGuard no_grad;
  const at::Tensor mean = at::softmax(logits.to(at::kDouble), 1).mean(0);
  const double entropy = -at::xlogy(mean, mean).sum().item<double>();
  const double concentration = 1 - entropy / std::log(static_cast<double>(logits.size(1)));
  if (!std::isfinite(concentration)) return false;
  return moved(mean_, concentration, options_.keep) > options_.above;
}

void ConcentrationReset::remember(StateArchive& archive) {
  remember_mean(archive, "reset_concentration_mean", mean_);
}

}  // namespace gala
