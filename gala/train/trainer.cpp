#include "gala/train/trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "gala/base/words.h"
#include "gala/data/data_paths.h"
#include "gala/device/capture_gate.h"
#include "gala/model/weights.h"
#include "gala/tensor/state_archive.h"
#include "gala/train/evaluate.h"
#include "gala/train/shard.h"

namespace gala {

// A step, on one page: batch, forward with the batch's statistics, loss, backward, update of
// everything.

bool Trainer::step() {
  if (finished()) return false;
  if (!loader_) open_loader();
  const std::optional<Batch> batch = loader_->next();
  if (!batch) fail("the stream ended after {} of {} steps", done_, schedule_.total);

  const c10::AutoGradMode with_gradients(true);
  const Uncaptured uncaptured;
  const std::int64_t views = curriculum_.views, images = batch->size() / views;
  const at::Tensor all_logits = model_.forward(batch->images).logits;
  const at::Tensor logits = views > 1 ? all_logits.narrow(0, 0, images) : all_logits;
  const at::Tensor labels = labels_of(*batch).narrow(0, 0, images);
  at::Tensor loss = cross_entropy(logits, labels, options_.label_smoothing);
  if (views > 1) loss = loss + options_.consistency * view_divergence(all_logits, views);
  // Of the mean over all processes, this one's share.
  if (processes_) loss = loss / processes_->size();
  loss.backward();

  optimizer_->set_learning_rate(full_rate_ * schedule_.factor(done_));
  Gradients gradients = Gradients::take(*arena_);
  if (processes_) share(gradients);
  optimizer_->step(gradients.pointers());

  const c10::NoGradGuard no_grad;
  loss_sum_ += loss;
  correct_ += (logits.argmax(1) == labels).sum();
  ++metered_steps_;
  metered_images_ += images;
  if (++done_ == schedule_.total) loader_.reset();
  return true;
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  constexpr std::int64_t kIgnoreNone = -100;
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, kIgnoreNone, smoothing);
}

at::Tensor view_divergence(const at::Tensor& logits, std::int64_t views) {
  const at::Tensor shaped = logits.view({views, -1, logits.size(1)});
  const at::Tensor log_share = shaped.log_softmax(2), share = log_share.exp();
  // As published, kept away from the logarithm of zero.
  const at::Tensor log_mixture = share.mean(0).clamp(1e-7, 1).log();
  return (share * (log_share - log_mixture)).sum(2).mean();
}

// What stands around it.

Trainer::Trainer(Model& model, Curriculum curriculum, const TrainPlan& plan, int loader_threads,
                 ProcessGroup* processes)
    : model_(model),
      curriculum_(processes ? share_of(std::move(curriculum), *processes) : std::move(curriculum)),
      options_(plan.train),
      has_epochs_(plan.data.sampling == Sampling::kShuffled),
      loader_threads_(loader_threads),
      processes_(processes),
      settings_(curriculum_.settings) {
  const Spec spec = options_.optimizer;
  settings_["optimizer"] = spec.to_string();
  optimizer_ = make_optimizer(spec);
  full_rate_ = optimizer_->learning_rate();

  const std::vector<BatchSpan> spans = curriculum_.stream.batches(curriculum_.batch_size);
  for (const BatchSpan& span : spans) per_epoch_ += span.segment == 0;
  schedule_ = {.kind = options_.schedule,
               .warmup = std::llround(options_.warmup_epochs * static_cast<double>(per_epoch_)),
               .total = static_cast<std::int64_t>(spans.size())};
  settings_["network"] = model.spec().to_string();
  settings_["first weights"] = weight_hash(model);
  settings_["preprocessing"] = model.preprocessing().to_json();
  settings_["schedule"] = format_value(options_.schedule);
  settings_["warmup_epochs"] = options_.warmup_epochs;
  settings_["label_smoothing"] = options_.label_smoothing;
  settings_["consistency"] = options_.consistency;
  settings_["seed"] = options_.seed;

  settings_["precision"] = format_value(options_.precision);

  model.set_precision(options_.precision);
  if (options_.channels_last && model.device().is_cuda()) {
    model.set_memory_format(at::MemoryFormat::ChannelsLast);
  }
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
  workspace_.emplace(model.device());
  optimizer_->attach(
      {arena_->layout(), layers_, arena_->values().mutable_data_ptr<float>(), *workspace_});
  model.set_norm_mode({.kind = NormKind::kTraining});
  model.set_processes(processes_);
  if (processes_) shared_ = arena_->make_buffer();

  const at::Device device = arena_->values().device();
  loss_sum_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  correct_ = at::zeros({}, at::TensorOptions(at::kLong).device(device));
}

Trainer::~Trainer() {
  model_.set_processes(nullptr);
}

void Trainer::share(Gradients& gradients) {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
    at::Tensor& gradient = gradients.tensors[i];
    if (!gradient.defined()) continue;
    const at::Tensor place = arena_->view(shared_, i);
    gradient = place.copy_(gradient);
  }
  processes_->sum(shared_);
}

void Trainer::open_loader() {
  LoaderOptions options;
  options.batch_size = curriculum_.batch_size;
  options.threads = loader_threads_;
  options.prefetch = 8;
  options.device = arena_->values().device();
  options.first_position =
      curriculum_.stream.batches(curriculum_.batch_size)[static_cast<std::size_t>(done_)].begin;
  loader_ = std::make_unique<Loader>(curriculum_.stream, *curriculum_.transform, options);
}

bool Trainer::evaluation_due() const {
  const std::int64_t every = options_.evaluate_every;
  if (every < 1 || done_ == 0) return false;
  if (finished()) return options_.keep == Keep::kBest;
  return has_epochs_ ? at_epoch_end() && epochs_done() % every == 0 : (done_ - 1) % every == 0;
}

double Trainer::learning_rate() const {
  return full_rate_ * schedule_.factor(std::min(done_, schedule_.total - 1));
}

Meter Trainer::read_meter() {
  Meter meter;
  meter.steps = metered_steps_;
  if (processes_) processes_->wait_for(model_.device());
  double loss_sum = loss_sum_.item<double>();
  auto correct = static_cast<double>(correct_.item<std::int64_t>());
  auto images = static_cast<double>(metered_images_);
  if (processes_) {
    at::Tensor sums = at::tensor({loss_sum, correct, images}, at::kDouble);
    processes_->sum(sums);
    const auto* sum = sums.const_data_ptr<double>();
    std::tie(loss_sum, correct, images) = std::tuple(sum[0], sum[1], sum[2]);
  }
  if (metered_steps_ > 0) {
    meter.loss = loss_sum / static_cast<double>(meter.steps);
    meter.accuracy = correct / images;
  }
  loss_sum_.zero_();
  correct_.zero_();
  metered_steps_ = metered_images_ = 0;
  if (!std::isfinite(meter.loss)) {
    fail(
        "the loss is no longer finite at step {} of {}: the rate may be too high ({}), or images "
        "or first weights are broken",
        done_, schedule_.total, full_rate_);
  }
  return meter;
}

namespace {

/// Settings as a state holds them: it may be gone on from in another folder, or by other links.
nlohmann::json with_one_spelling(nlohmann::json settings) {
  for (const char* name : {"data", "evaluation"}) {
    if (!settings.contains(name)) continue;
    const Spec spec = Spec::parse(settings[name].get<std::string>());
    settings[name] = with_canonical_paths(spec).to_string();
  }
  return settings;
}

}  // namespace

State Trainer::save() const {
  State state;
  arena_->save(arena_->values(), "parameter/", state);
  StateArchive archive(*arena_, state);
  optimizer_->remember(archive);
  for (const Buffer& buffer : model_.buffers()) {
    state.tensors["buffer/" + buffer.name] = buffer.value.detach().to(at::kCPU).clone();
  }
  state.values["training"] = {{"settings", with_one_spelling(settings_)}, {"step", done_}};
  return state;
}

void Trainer::load(const State& state) {
  const auto found = state.values.find("training");
  if (found == state.values.end()) fail<ConfigError>("it is not the state of a training run");
  const nlohmann::json saved = found->value("settings", nlohmann::json::object());
  const nlohmann::json current = with_one_spelling(settings_);
  for (const auto& [name, value] : current.items()) {
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
    StateArchive archive(*arena_, state);
    optimizer_->remember(archive);
    for (Buffer& buffer : model_.buffers()) {
      buffer.value.copy_(state.tensors.at("buffer/" + buffer.name));
    }
    done_ = found->at("step").get<std::int64_t>();
  } catch (const std::exception& problem) {
    fail<ConfigError>("it cannot be used: {}", in_words(problem));
  }
  if (done_ < 0 || done_ > schedule_.total) fail<ConfigError>("it cannot be at step {}", done_);
  loader_.reset();
}

}  // namespace gala
