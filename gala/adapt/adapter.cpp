#include "gala/adapt/adapter.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <typeinfo>

#include "gala/adapt/fit.h"
#include "gala/base/error.h"
#include "gala/base/stopwatch.h"
#include "gala/device/capture_gate.h"
#include "gala/tensor/norms.h"

namespace gala {
namespace {

/// Where the time of a pass went; where its phases are not timed apart, all of it counts as forward.
StepTimes pass_times(const WorkQueue& queue, double whole) {
  if (!queue.times_phases()) return {.forward = whole};
  return {.copy = queue.phase_time(1),
          .forward = queue.phase_time(2),
          .backward = queue.phase_time(3),
          .measure = queue.phase_time(4)};
}

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

}  // namespace

// The method, on one page. For each batch: forward, loss, backward, measure every layer's update,
// let the selector choose, move what it chose, answer.

Answer Adapter::answer(const at::Tensor& images) {
  if (images.dim() != 4 || images.size(1) != 3) fail("images must be [N, 3, H, W]");
  const auto scope = queue_->enter();
  ++totals_.batches;
  if (options_.episodic) restart();

  Answer answer;
  Frame* frame = nullptr;
  if (adapts_now()) {
    for (std::int64_t inner = 0; inner < options_.inner_steps; ++inner) {
      frame = &adapt_once(images, /*first_of_batch=*/inner == 0, answer.steps);
    }
  } else {
    frame = &run(images, PassKind::kAnswer);
  }
  answer.logits = predict(*frame, answer.steps);
  at::Tensor on_host = frame->facts.logits();
  if (!answer.logits.is_same(frame->output.logits)) {
    on_host = answer.logits.to(at::kCPU);
  } else if (frame->work) {
    answer.logits = std::move(frame->answer);
  }
  BatchHealth health = look_at(on_host);
  answer.predictions = health.predictions;
  if (health.not_finite > 0) {
    answer_again(answer, frame->images);
    health.not_finite = std::ssize(answer.from_source);
    health.broken = std::ssize(answer.unanswered);
  }
  if (options_.shadow) put_in_shadow(answer, frame->images);
  totals_.from_source += std::ssize(answer.from_source);
  totals_.unanswered += std::ssize(answer.unanswered);
  watch(answer, std::move(health));
  for (const at::Tensor& logits : {answer.logits, answer.adapted}) {
    if (logits.defined()) scope->hand_over(logits);
  }
  return answer;
}

Frame& Adapter::adapt_once(const at::Tensor& images, bool first_of_batch,
                           std::vector<StepRecord>& steps) {
  StepRecord record;
  record.step = totals_.steps + 1;
  record.window_step = clock_.window_step;
  record.batch = totals_.batches;

  open_window();
  optimizer_->prepare();
  const std::vector<at::Tensor> statistics = copy_statistics();
  Stopwatch watch;
  Frame& frame = run(images, first_of_batch ? PassKind::kAdapt : PassKind::kAdaptAgain);
  record.times = pass_times(*queue_, watch.lap());
  record.loss = frame.facts.loss();
  record.confident = frame.facts.confident();
  record.gradient_norm = gradient_norm(frame.facts.sums());
  record.refused = !std::isfinite(record.loss) || !std::isfinite(record.gradient_norm) ||
                   !update_is_finite(frame.facts.sums());
  record.refused ? put_back(statistics) : choose_and_move(frame, record);
  count(record);
  steps.push_back(std::move(record));
  return frame;
}

/// Forward, loss, backward and measure. It only queues work: `run` may have it captured.
void Adapter::pass(Frame& frame, PassKind kind) {
  const c10::AutoGradMode with_gradients(kind != PassKind::kAnswer);
  queue_->mark(1);
  frame.output = model_.forward(frame.images, /*update_statistics=*/kind != PassKind::kAdaptAgain);
  if (kind == PassKind::kAnswer) return frame.facts.note(frame.output.logits, nullptr, *queue_);
  const LossTerms terms = loss_->evaluate(frame.output);
  queue_->mark(2);
  terms.value.backward();
  frame.gradients = Gradients::take(*arena_);
  queue_->mark(3);
  optimizer_->measure(frame.gradients, terms.value, *displacement_, frame.facts.table());
  frame.facts.note(frame.output.logits, &terms, *queue_);
  queue_->mark(4);
}

void Adapter::choose_and_move(Frame& frame, StepRecord& record) {
  const std::span<const LayerSums> sums = frame.facts.sums();
  Stopwatch watch;
  const std::vector<double> weights = selector_->select(
      {layers_, sums, clock_, optimizer_->learning_rate(), frame.gradients, *arena_});
  record.times.select = watch.lap();
  optimizer_->apply(frame.gradients, *displacement_, weights);
  record.times.apply = watch.lap();
  clock_.advance(window_.length);
  window_open_ = false;

  record.layers.reserve(layers_.size());
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    record.layers.push_back(
        {cosine(sums[l]), std::sqrt(sums[l].update_sq), std::sqrt(sums[l].shift_sq), weights[l]});
  }
}

/// Once for each window, before its first pass, so that the pass needs no second look at the clock.
void Adapter::open_window() {
  if (!clock_.opens_window() || window_open_) return;
  displacement_->open_window(*arena_);
  if (window_.resets_optimizer) optimizer_->reset();
  window_open_ = true;
}

/// The logits that answer: those of the pass, or of another one behind what moved.
at::Tensor Adapter::predict(Frame& frame, const std::vector<StepRecord>& steps) {
  if (options_.predict == PredictWith::kAdapting || steps.empty()) return frame.output.logits;
  const std::vector<std::size_t> moved = steps.back().selected();
  if (moved.empty()) return frame.output.logits;
  int first = stages_[moved.front()];
  for (const std::size_t layer : moved) first = std::min(first, stages_[layer]);
  const c10::NoGradGuard no_grad;
  const Uncaptured uncaptured;  // for networks that are not ours
  return model_.forward_again(frame.output, frame.images, first).logits;
}

// What stands around it.

Frame& Adapter::run(const at::Tensor& images, PassKind kind) {
  const bool captures = setup_.capture && queue_->captures() && optimizer_->can_be_captured() &&
                        capture_problem_.empty();
  const Frames::Key key{images.size(0), images.size(2), images.size(3), kind,
                        model_.norm_mode().to_string()};
  Frame& frame = frames_.find(key, [&] {
    return Frame{.facts = {layers_, images.size(0), model_.classes(), model_.device()}};
  });
  queue_->mark(0);
  if (!frame.work) {
    frame.output = {};  // before the pass makes new ones
    frame.gradients = {};
    frame.images = images.to(model_.device(), /*dtype=*/at::kFloat, /*non_blocking=*/true);
    if (captures && frames_.repeats(key)) capture(frame, kind);
  } else {
    frame.images.copy_(images, /*non_blocking=*/true);
  }
  if (frame.work) {
    frame.work->replay();
  } else {
    const Uncaptured uncaptured;
    pass(frame, kind);
  }
  frame.output.logits = frame.output.logits.detach();
  frame.output.features = frame.output.features.detach();
  // What a captured pass writes to, the next one overwrites.
  if (frame.work) frame.answer = frame.output.logits.clone();
  queue_->wait();
  return frame;
}

void Adapter::capture(Frame& frame, PassKind kind) {
  frame.images = frame.images.clone(model_.memory_format());
  try {
    frame.work = queue_->capture([&] { pass(frame, kind); });
  } catch (const std::exception& problem) {
    capture_problem_ = problem.what();
    frame.output = {};
    frame.gradients = {};
    for (const Parameter* parameter : adapted_) parameter->value.mutable_grad() = at::Tensor();
  }
}

Adapter::Adapter(Model& model, const MethodOptions& options, const AdapterSetup& setup)
    : Adapter(model, options, make_loss(Spec::parse(options.loss)),
              make_optimizer(Spec::parse(options.optimizer)),
              make_selector(Spec::parse(options.select), static_cast<std::uint64_t>(options.seed)),
              setup) {
  own_parts_.clear();  // the options name them
}

Adapter::Adapter(Model& model, const MethodOptions& options, std::unique_ptr<Loss> loss,
                 std::unique_ptr<Optimizer> optimizer, std::unique_ptr<Selector> selector,
                 const AdapterSetup& setup)
    : model_(model),
      loan_(model),
      options_(options),
      setup_(setup),
      loss_(std::move(loss)),
      optimizer_(std::move(optimizer)),
      selector_(std::move(selector)),
      guard_(options.guard, model.classes()),
      window_(selector_->window()) {
  const Loss& given_loss = *loss_;
  const Optimizer& given_optimizer = *optimizer_;
  const Selector& given_selector = *selector_;
  own_parts_ = {typeid(given_loss).name(), typeid(given_optimizer).name(),
                typeid(given_selector).name()};
  const NormMode mode =
      options.norm.empty() ? loan_.norm_mode_before() : NormMode::parse(options.norm);
  options_.norm = mode.to_string();
  selector_->name_run(run_name());
  Fit found = fit(model, options, *loss_, *selector_);
  model.set_norm_mode(mode);
  options_.partition = found.granularity;
  options_.head = found.head ? HeadRule::kAdapt : HeadRule::kFreeze;
  adapted_ = std::move(found.adapted);
  layers_ = std::move(found.layers);
  std::vector<NamedTensor> named;
  for (const Parameter* parameter : adapted_) named.push_back({parameter->name, parameter->value});
  arena_.emplace(named);
  for (std::size_t i = 0; i < adapted_.size(); ++i) adapted_[i]->value = arena_->leaf(i);
  // What does not adapt takes no gradient, also where training gave it some.
  for (Parameter& parameter : model.parameters()) {
    if (std::find(adapted_.begin(), adapted_.end(), &parameter) == adapted_.end()) {
      parameter.value = parameter.value.detach();
    }
  }
  for (const Layer& layer : layers_.layers) {
    int first = std::numeric_limits<int>::max();
    for (const std::size_t t : layer.tensors) first = std::min(first, adapted_[t]->stage);
    stages_.push_back(first);
  }
  model.keep_activations(options.predict == PredictWith::kAfter);
  queue_ = WorkQueue::make(model.device());
  queue_->time_phases(setup.profile);
  displacement_.emplace(*arena_, window_.form, window_.anchor);
  optimizer_->attach(*arena_, layers_, selector_->reads_values());
  travelled_.assign(layers_.size(), 0.0);
  source_ = take_snapshot();
  source_norm_ = std::max(std::sqrt(squared_norm(source_.values)), 1e-150);
  healthy_ = source_;
  reset();
}

Adapter::~Adapter() {
  try {
    const auto scope = queue_->enter();
    frames_ = Frames{};
    restore(source_);
    queue_->wait();
  } catch (const std::exception&) {
    // A device that is broken says so to the next who uses it.
  }
}

std::string Adapter::run_name() const {
  if (!setup_.run.empty()) return setup_.run;
  return fmt::format("{} {} {} {} {} {}", model_.spec().to_string(), options_.loss,
                     options_.optimizer, options_.norm, options_.inner_steps, options_.adapt_every);
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
    const double way = record.layers[l].weight * record.layers[l].update_norm;
    totals_.path[l] += way;
    travelled_[l] += way;
  }
}

void Adapter::reset() {
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
  selector_->restart();
  clock_ = {};
  window_open_ = false;
}

}  // namespace gala
