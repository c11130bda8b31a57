#include "gala/step/stepper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "gala/base/error.h"
#include "gala/base/stopwatch.h"

namespace gala {
namespace {

double gradient_norm(std::span<const LayerSums> sums) {
  double square = 0;
  for (const LayerSums& row : sums) square += row.gradient_sq;
  return std::sqrt(square);
}

/// A rate can be so large that a finite gradient makes an update that is not.
bool update_is_finite(std::span<const LayerSums> sums) {
  return std::all_of(sums.begin(), sums.end(),
                     [](const LayerSums& row) { return std::isfinite(row.update_sq); });
}

void check_weights(std::span<const double> weights, std::size_t layers) {
  if (weights.size() != layers) {
    fail("the selector gave {} weights for {} layers", weights.size(), layers);
  }
  for (const double weight : weights) {
    // Updates are float32: a weight of 1e39 is infinite to them.
    if (!(std::abs(weight) <= std::numeric_limits<float>::max())) {
      fail("the selector gave a layer the weight {}", weight);
    }
  }
}

}  // namespace

void Stepper::begin() {
  // Once for each window, before its first pass, so that the pass needs no second look at the clock.
  if (clock_.opens_window() && !window_open_) {
    displacement_->open_window();
    if (window_.resets_optimizer) optimizer_->reset();
    window_open_ = true;
  }
  optimizer_->prepare();
}

void Stepper::measure(GradientPointers gradients, const float* loss, double* table) {
  optimizer_->measure(gradients, loss, displacement_->view(), table);
}

StepRecord Stepper::move(GradientPointers gradients, double loss, std::span<const LayerSums> sums,
                         const Circumstances& around) {
  StepRecord record;
  record.step = clock_.step;
  record.window_step = clock_.window_step;
  record.loss = loss;
  record.gradient_norm = gradient_norm(sums);
  record.refused =
      !std::isfinite(loss) || !std::isfinite(record.gradient_norm) || !update_is_finite(sums);
  if (record.refused) return record;

  Stopwatch watch;
  const std::vector<double> weights =
      selector_->select({layers_, sums, clock_, optimizer_->learning_rate(), layout_, gradients,
                         *workspace_, around.probed, around.images, around.moved, loss});
  check_weights(weights, layers_.size());
  record.times.select = watch.lap();
  optimizer_->apply(gradients, displacement_->view(), weights);
  record.times.apply = watch.lap();
  clock_.advance(window_.length);
  window_open_ = false;

  record.layers.reserve(layers_.size());
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    record.layers.push_back(
        {cosine(sums[l]), std::sqrt(sums[l].update_sq), std::sqrt(sums[l].shift_sq), weights[l]});
  }
  return record;
}

StepRecord Stepper::pause(double loss) const {
  StepRecord record;
  record.window_step = clock_.window_step;
  record.loss = loss;
  return record;
}

StepRecord Stepper::step(GradientPointers gradients, const float* loss) {
  if (gradients.size() != layout_.entries.size()) {
    fail("{} gradients were given for {} tensors", gradients.size(), layout_.entries.size());
  }
  const std::size_t numbers = layers_.size() * kSumColumns;
  if (!table_) table_ = workspace_->make(static_cast<std::int64_t>(numbers * sizeof(double)));
  begin();
  measure(gradients, loss, table_.data<double>());
  std::vector<double> table(numbers);
  float value = 0;
  workspace_->fetch(table.data(), table_.data<double>(), table_.bytes());
  workspace_->fetch(&value, loss, sizeof(value));
  std::vector<LayerSums> sums;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    sums.push_back(read_sums(table.data() + l * kSumColumns, layers_[l].count));
  }
  return move(gradients, value, sums);
}

Stepper::Stepper(ArenaLayout layout, float* values, LayerPartition layers,
                 std::unique_ptr<Optimizer> optimizer, std::unique_ptr<Selector> selector,
                 std::unique_ptr<Workspace> workspace)
    : layout_(std::move(layout)),
      layers_(std::move(layers)),
      workspace_(std::move(workspace)),
      optimizer_(std::move(optimizer)),
      selector_(std::move(selector)),
      window_(selector_->window()) {
  displacement_.emplace(values, layout_.size, *workspace_, window_.form, window_.anchor,
                        window_.keep);
  optimizer_->attach({layout_, layers_, values, *workspace_, selector_->reads_values()});
}

void Stepper::reset() {
  restart();
  selector_->reset();
}

void Stepper::restart() {
  optimizer_->reset();
  displacement_->reset();
  selector_->restart();
  clock_ = {};
  window_open_ = false;
}

void Stepper::remember(Archive& archive) {
  displacement_->remember(archive);
  optimizer_->remember(archive);
  selector_->remember(archive);
  std::array<std::int64_t, 2> clock{clock_.step, clock_.window_step};
  archive.value("clock", clock);
  clock_ = {clock[0], clock[1]};
  archive.value("window_open", window_open_);
}

}  // namespace gala
