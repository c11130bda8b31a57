#include "gala/train/trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "gala/model/weights.h"
#include "gala/train/evaluate.h"

namespace gala {

// A step, on one page: batch, forward with the batch's statistics, loss, backward, update of
// everything.

bool Trainer::step() {
  if (finished()) return false;
  if (!loader_) open_loader();
  const std::optional<Batch> batch = loader_->next();
  if (!batch) fail("the stream ended after {} of {} steps", done_, schedule_.total);
  const DeviceBatch given = DeviceBatch::of(*batch, arena_->values().device());

  const c10::AutoGradMode with_gradients(true);
  const at::Tensor logits = model_.forward(given.images).logits;
  const at::Tensor loss = cross_entropy(logits, given.labels, options_.label_smoothing);
  loss.backward();

  constexpr double kWhole[] = {1.0};
  optimizer_->set_learning_rate(full_rate_ * schedule_.factor(done_));
  optimizer_->prepare();
  optimizer_->apply(Gradients::take(*arena_), *displacement_, kWhole);

  const c10::NoGradGuard no_grad;
  loss_sum_ += loss;
  correct_ += (logits.argmax(1) == given.labels).sum();
  metered_ += batch->size();
  if (++done_ == schedule_.total) loader_.reset();
  return true;
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  constexpr std::int64_t kIgnoreNone = -100;
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, kIgnoreNone, smoothing);
}

// What stands around it.

Trainer::Trainer(Model& model, Stream stream, std::unique_ptr<const Transform> transform,
                 const TrainPlan& plan, int loader_threads)
    : model_(model),
      stream_(std::move(stream)),
      transform_(std::move(transform)),
      options_(plan.train),
      loader_threads_(loader_threads) {
  Spec spec = Spec::parse(options_.optimizer);
  spec.set("moments", "selected");  // `apply` alone does the whole step then
  optimizer_ = make_optimizer(spec);
  full_rate_ = optimizer_->learning_rate();

  const std::vector<BatchSpan> spans = stream_.batches(options_.batch_size);
  for (const BatchSpan& span : spans) per_epoch_ += span.segment == 0;
  schedule_ = {.kind = options_.schedule,
               .warmup = std::llround(options_.warmup_epochs * static_cast<double>(per_epoch_)),
               .total = static_cast<std::int64_t>(spans.size())};
  settings_ = {{"network", model.spec().to_string()},
               {"first weights", weight_hash(model)},
               {"preprocessing", model.preprocessing().to_json()},
               {"images", stream_.size()},
               {"augmentation", format_value(plan.data.augmentation)},
               {"batch_size", options_.batch_size},
               {"optimizer", options_.optimizer},
               {"schedule", format_value(options_.schedule)},
               {"warmup_epochs", options_.warmup_epochs},
               {"label_smoothing", options_.label_smoothing},
               {"seed", options_.seed}};

  std::vector<NamedTensor> named;
  Layer everything{"all", {}, 0};
  for (const Parameter& parameter : model.parameters()) {
    everything.tensors.push_back(named.size());
    everything.count += parameter.value.numel();
    named.push_back({parameter.name, parameter.value.detach()});
  }
  layers_.layers = {everything};
  arena_.emplace(named);
  std::size_t i = 0;
  for (Parameter& parameter : model.parameters()) parameter.value = arena_->leaf(i++);
  // `difference` costs nothing while stepping; nobody asks for the displacement here.
  displacement_.emplace(*arena_, DisplacementForm::kDifference, Anchor::kWindow);
  optimizer_->attach(*arena_, layers_, /*sum_values=*/false);
  model.set_norm_mode({.kind = NormKind::kTraining});

  const at::Device device = arena_->values().device();
  loss_sum_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  correct_ = at::zeros({}, at::TensorOptions(at::kLong).device(device));
}

void Trainer::open_loader() {
  LoaderOptions options;
  options.batch_size = options_.batch_size;
  options.threads = loader_threads_;
  options.prefetch = 8;
  options.pinned = arena_->values().is_cuda();
  options.first_position =
      stream_.batches(options_.batch_size)[static_cast<std::size_t>(done_)].begin;
  loader_ = std::make_unique<Loader>(stream_, *transform_, options);
}

double Trainer::learning_rate() const {
  return full_rate_ * schedule_.factor(std::min(done_, schedule_.total - 1));
}

Meter Trainer::read_meter() {
  Meter meter;
  meter.steps = metered_ / options_.batch_size;
  if (metered_ > 0) {
    meter.loss = loss_sum_.item<double>() / static_cast<double>(meter.steps);
    meter.accuracy =
        static_cast<double>(correct_.item<std::int64_t>()) / static_cast<double>(metered_);
  }
  loss_sum_.zero_();
  correct_.zero_();
  metered_ = 0;
  if (!std::isfinite(meter.loss)) {
    fail(
        "the loss is no longer finite at step {} of {}: the rate may be too high ({}), or images "
        "or first weights are broken",
        done_, schedule_.total, full_rate_);
  }
  return meter;
}

State Trainer::save() const {
  State state;
  arena_->save(arena_->values(), "parameter/", state);
  optimizer_->save(*arena_, state);
  for (const Buffer& buffer : model_.buffers()) {
    state.tensors["buffer/" + buffer.name] = buffer.value.detach().to(at::kCPU).clone();
  }
  state.values["training"] = {{"settings", settings_}, {"step", done_}};
  return state;
}

void Trainer::load(const State& state) {
  const auto found = state.values.find("training");
  if (found == state.values.end()) fail<ConfigError>("it is not the state of a training run");
  const nlohmann::json saved = found->value("settings", nlohmann::json::object());
  for (const auto& [name, value] : settings_.items()) {
    const nlohmann::json before = saved.contains(name) ? saved[name] : nlohmann::json();
    if (before != value) {
      fail<ConfigError>("it was saved with {} {}, this run has {}", name, before.dump(),
                        value.dump());
    }
  }
  const c10::NoGradGuard no_grad;
  try {
    at::Tensor parameters = arena_->values();
    arena_->load(parameters, "parameter/", state);
    optimizer_->load(*arena_, state);
    for (Buffer& buffer : model_.buffers()) {
      buffer.value.copy_(state.tensors.at("buffer/" + buffer.name));
    }
    done_ = found->at("step").get<std::int64_t>();
  } catch (const std::exception& problem) {
    fail<ConfigError>("it cannot be used: {}", problem.what());
  }
  if (done_ < 0 || done_ > schedule_.total) fail<ConfigError>("it cannot be at step {}", done_);
  loader_.reset();
}

}  // namespace gala
