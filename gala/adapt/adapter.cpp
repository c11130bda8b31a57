#include "gala/adapt/adapter.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"
#include "gala/tensor/norms.h"

namespace gala {

// The method, on one page. For each batch: forward, loss, backward, measure every layer's update,
// let the selector choose, move what it chose, answer.

Answer Adapter::answer(const at::Tensor& images) {
  if (images.dim() != 4 || images.size(1) != 3) fail("images must be [N, 3, H, W]");
  const at::Tensor input = images.to(model_.device());
  ++totals_.batches;
  if (options_.episodic) restart();

  Answer answer;
  Output output;
  if (adapts_now()) {
    for (std::int64_t inner = 0; inner < options_.inner_steps; ++inner) {
      output = adapt_once(input, /*first_of_batch=*/inner == 0, answer.steps);
    }
  }
  if (!output.logits.defined() || options_.predict == PredictWith::kAfter) {
    const c10::NoGradGuard no_grad;
    output = model_.forward(input, /*update_statistics=*/!output.logits.defined());
  }
  answer.logits = output.logits.detach();
  if (options_.shadow) {
    answer.adapted = answer.logits;
    answer.logits = answer_from_source(input);
  }
  watch(answer);
  return answer;
}

Output Adapter::adapt_once(const at::Tensor& images, bool first_of_batch,
                           std::vector<StepRecord>& steps) {
  StepRecord record;
  record.step = totals_.steps + 1;
  record.window_step = clock_.window_step;
  record.batch = totals_.batches;
  Stopwatch watch;

  const c10::AutoGradMode with_gradients(true);
  const std::vector<at::Tensor> statistics = copy_statistics();
  Output output = model_.forward(images, /*update_statistics=*/first_of_batch);
  const LossTerms terms = loss_->evaluate(output);
  record.times.forward = watch.lap();
  terms.value.backward();
  const Gradients gradients = Gradients::take(*arena_);
  record.times.backward = watch.lap();

  record.loss = terms.value.item<double>();
  record.confident = terms.confident.item<std::int64_t>();
  record.gradient_norm = norm(gradients);
  record.refused = !std::isfinite(record.loss) || !std::isfinite(record.gradient_norm);
  record.refused ? put_back(statistics) : choose_and_move(gradients, record, watch);
  count(record);
  steps.push_back(std::move(record));
  return output;
}

void Adapter::choose_and_move(const Gradients& gradients, StepRecord& record, Stopwatch& watch) {
  if (clock_.opens_window()) {
    displacement_->open_window(*arena_);
    if (window_.resets_optimizer) optimizer_->reset();
  }
  const auto sums = optimizer_->measure(gradients, *arena_, layers_, *displacement_);
  record.times.measure = watch.lap();
  const std::vector<double> weights =
      selector_->select({layers_, sums, clock_, optimizer_->learning_rate(), gradients, *arena_});
  record.times.select = watch.lap();
  optimizer_->apply(gradients, *arena_, layers_, *displacement_, weights);
  record.times.apply = watch.lap();
  clock_.advance(window_.length);

  for (std::size_t l = 0; l < layers_.size(); ++l) {
    record.layers.push_back(
        {cosine(sums[l]), std::sqrt(sums[l].update_sq), std::sqrt(sums[l].shift_sq), weights[l]});
  }
}

// What stands around it.

Adapter::Adapter(Model& model, const AdapterOptions& options)
    : Adapter(model, options, make_loss(Spec::parse(options.loss)),
              make_optimizer(Spec::parse(options.optimizer)),
              make_selector(Spec::parse(options.select), options.seed)) {}

Adapter::Adapter(Model& model, const AdapterOptions& options, std::unique_ptr<Loss> loss,
                 std::unique_ptr<Optimizer> optimizer, std::unique_ptr<Selector> selector)
    : model_(model),
      options_(options),
      loss_(std::move(loss)),
      optimizer_(std::move(optimizer)),
      selector_(std::move(selector)),
      guard_(options.guard, model.classes()),
      window_(selector_->window()) {
  if (options.inner_steps < 1) {
    fail<ConfigError>("inner steps must be at least 1, not {}", options.inner_steps);
  }
  if (options.adapt_every < 1) {
    fail<ConfigError>("adapt-every must be at least 1, not {}", options.adapt_every);
  }
  const Granularity granularity = options.partition.value_or(selector_->default_granularity());
  ParameterFilter filter{.head = options.head.value_or(loss_->adapts_head()),
                         .include = options.include,
                         .exclude = options.exclude};
  selector_->restrict(filter);
  adapted_ = adapted_parameters(model, filter, granularity);
  layers_ = make_partition(adapted_, granularity);
  std::vector<NamedTensor> named;
  for (const Parameter* parameter : adapted_) named.push_back({parameter->name, parameter->value});
  arena_.emplace(named);
  for (std::size_t i = 0; i < adapted_.size(); ++i) adapted_[i]->value = arena_->leaf(i);
  // What does not adapt takes no gradient, also where an adapter before this one gave it some.
  for (Parameter& parameter : model.parameters()) {
    if (std::find(adapted_.begin(), adapted_.end(), &parameter) == adapted_.end()) {
      parameter.value = parameter.value.detach();
    }
  }
  displacement_.emplace(*arena_, window_.form, window_.anchor);
  optimizer_->attach(*arena_, layers_);
  selector_->attach(layers_);
  source_ = take_snapshot();
  healthy_ = source_;
  reset();
}

/// The running statistics where the norm mode moves them; else nothing.
std::vector<at::Tensor> Adapter::copy_statistics() const {
  std::vector<at::Tensor> copies;
  if (!model_.norm_mode().keeps_statistics()) return copies;
  for (const Buffer& buffer : model_.buffers()) copies.push_back(buffer.value.clone());
  return copies;
}

void Adapter::put_back(const std::vector<at::Tensor>& statistics) {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    model_.buffers()[i].value.copy_(statistics[i]);
  }
}

bool Adapter::adapts_now() const {
  return !stopped_ && !selector_->idle() && (totals_.batches - 1) % options_.adapt_every == 0;
}

void Adapter::count(const StepRecord& record) {
  ++totals_.steps;
  totals_.refused += record.refused;
  totals_.skipped += record.skipped();
  for (std::size_t l = 0; l < record.layers.size(); ++l) {
    totals_.chosen[l] += record.layers[l].weight == 1;
    totals_.path[l] += record.layers[l].weight * record.layers[l].update_norm;
  }
}

void Adapter::reset() {
  restore(source_);
  restart();
  selector_->reset();
  guard_.forget(/*all=*/true);
  healthy_ = source_;
  totals_ = {};
  totals_.chosen.assign(layers_.size(), 0);
  totals_.path.assign(layers_.size(), 0.0);
  stopped_ = false;
}

void Adapter::restart() {
  restore(source_);
  optimizer_->reset();
  displacement_->reset(*arena_);
  clock_ = {};
}

at::Tensor Adapter::answer_from_source(const at::Tensor& images) {
  const c10::NoGradGuard no_grad;
  const Snapshot adapted = take_snapshot();
  const NormMode mode = model_.norm_mode();
  restore(source_);
  model_.set_norm_mode({});
  const at::Tensor logits = model_.forward(images, /*update_statistics=*/false).logits;
  model_.set_norm_mode(mode);
  restore(adapted);
  return logits;
}

void Adapter::watch(Answer& answer) {
  if (guard_.action() == GuardAction::kOff) return;
  const c10::NoGradGuard no_grad;
  const at::Tensor logits = answer.adapted.defined() ? answer.adapted : answer.logits;
  const at::Tensor log_p = at::log_softmax(logits, 1);
  const at::Tensor labels = logits.argmax(1).to(at::kCPU).contiguous();
  BatchHealth health;
  health.predictions.assign(labels.const_data_ptr<std::int64_t>(),
                            labels.const_data_ptr<std::int64_t>() + labels.numel());
  health.entropy_sum = -(log_p.exp() * log_p).sum().item<double>();
  for (const StepRecord& step : answer.steps) {
    double applied = 0;
    for (const LayerRecord& layer : step.layers) {
      applied += std::pow(layer.weight * layer.update_norm, 2);
    }
    health.update_norm = std::max(health.update_norm, std::sqrt(applied));
    health.refused += step.refused;
  }
  if (!guard_.observe(health)) return;
  answer.health = guard_.judge(relative_displacement());
  answer.health->batch = totals_.batches;
  if (!answer.health->collapsed) {
    if (keeps_healthy()) healthy_ = take_snapshot();
    return;
  }
  if (guard_.action() == GuardAction::kStop) stopped_ = true;
  if (guard_.action() != GuardAction::kRollback) return;
  restart();
  if (keeps_healthy()) restore(healthy_);
  guard_.forget(/*all=*/false);
  ++totals_.rollbacks;
}

bool Adapter::keeps_healthy() const {
  return guard_.action() == GuardAction::kRollback &&
         guard_.options().to == RollbackTarget::kHealthy;
}

Adapter::Snapshot Adapter::take_snapshot() const {
  Snapshot snapshot{arena_->values().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true), {}};
  for (const Buffer& buffer : model_.buffers()) {
    snapshot.buffers.push_back(buffer.value.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
  }
  return snapshot;
}

void Adapter::restore(const Snapshot& snapshot) {
  const c10::NoGradGuard no_grad;
  arena_->values().copy_(snapshot.values);
  std::size_t i = 0;
  for (Buffer& buffer : model_.buffers()) buffer.value.copy_(snapshot.buffers[i++]);
}

std::vector<double> Adapter::net_displacement() const {
  const at::Tensor difference = arena_->values().to(at::kCPU) - source_.values;
  std::vector<double> norms;
  for (const Layer& layer : layers_.layers) {
    double square = 0;
    for (const std::size_t t : layer.tensors) square += squared_norm(arena_->view(difference, t));
    norms.push_back(std::sqrt(square));
  }
  return norms;
}

double Adapter::relative_displacement() const {
  const at::Tensor difference = arena_->values().to(at::kCPU) - source_.values;
  return std::sqrt(squared_norm(difference) / std::max(squared_norm(source_.values), 1e-300));
}

}  // namespace gala
