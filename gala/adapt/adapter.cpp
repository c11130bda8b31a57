#include "gala/adapt/adapter.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <typeinfo>

#include "gala/adapt/fit.h"
#include "gala/base/error.h"
#include "gala/tensor/norms.h"
#include "gala/tensor/torch_workspace.h"

namespace gala {
namespace {

constexpr int kNoStage = std::numeric_limits<int>::max();

}  // namespace

// The method, on one page. For each batch: forward, loss, backward, measure every layer's update,
// let the selector choose, move what it chose, answer.

Answer Adapter::answer(const at::Tensor& images) {
  if (images.dim() != 4 || images.size(1) != 3) fail("images must be [N, 3, H, W]");
  const auto scope = runner_->enter();
  ++totals_.batches;
  if (options_.episodic) restart();

  const Store::Shown shown =
      parts_.store ? parts_.store->show(images) : Store::Shown{.images = images, .adapt = true};
  const PassKind still = shown.statistics ? PassKind::kAnswer : PassKind::kAnswerStill;
  Answer answer;
  Frame& frame = adapts_now() && shown.adapt ? adapt_to(shown.images, answer.steps)
                                             : runner_->run(shown.images, still, {});
  answer.logits = predict(frame, answer.steps);
  if (parts_.drift && adapts_now()) {
    const PassRunner::Apart apart;
    parts_.drift->observe(frame.taught.logits.defined() ? frame.taught : frame.output);
  }
  // A store makes passes of its own before the guard looks.
  const at::Tensor raw = parts_.store ? frame.facts.logits().clone() : frame.facts.logits();
  at::Tensor on_host = raw, asked = frame.images;
  if (!answer.logits.is_same(frame.logits)) {
    on_host = answer.logits.to(at::kCPU);
  } else if (frame.work) {
    answer.logits = std::move(frame.answer);
  }
  if (shown.rows.defined()) {
    asked = asked.index_select(0, shown.rows);
    answer.logits = answer.logits.index_select(0, shown.rows);
    on_host = on_host.index_select(0, shown.rows.to(at::kCPU));
  }
  BatchHealth health = look_at_rows(on_host);
  answer.predictions = health.predictions;
  if (spread_) {
    spread_->take(health.predictions);
    model_.set_label_spread(spread_->value());
  }
  if (health.not_finite > 0) {
    answer_again(answer, asked);
    health.not_finite = std::ssize(answer.from_source);
    health.broken = std::ssize(answer.unanswered);
  }
  if (options_.shadow) put_in_shadow(answer, asked);
  if (parts_.store && adapts_now()) {
    parts_.store->take(asked, raw, [&](const at::Tensor& kept) { adapt_to(kept, answer.steps); });
  }
  totals_.from_source += std::ssize(answer.from_source);
  totals_.unanswered += std::ssize(answer.unanswered);
  watch(answer, std::move(health), {shown.images, raw});
  for (const at::Tensor& logits : {answer.logits, answer.adapted}) {
    if (logits.defined()) scope->hand_over(logits);
  }
  return answer;
}

Frame& Adapter::adapt_to(const at::Tensor& images, std::vector<StepRecord>& steps) {
  Frame* frame = nullptr;
  for (std::int64_t inner = 0; inner < options_.inner_steps; ++inner) {
    frame = &adapt_once(images, /*first_of_batch=*/inner == 0, steps);
  }
  return *frame;
}

Frame& Adapter::adapt_once(const at::Tensor& images, bool first_of_batch,
                           std::vector<StepRecord>& steps) {
  stepper_->begin();
  if (parts_.view) {
    const int looks = parts_.teacher ? parts_.teacher->looks() : 0;
    parts_.view->draw(static_cast<std::uint64_t>(options_.seed), totals_.steps + 1,
                      std::max(looks, parts_.loss->needs().looks));
  }
  const std::vector<at::Tensor> statistics = copy_statistics();
  Frame& frame = runner_->run(
      images, first_of_batch ? PassKind::kAdapt : PassKind::kAdaptAgain,
      {.captured = can_be_captured(), .in_pieces = in_pieces(), .chooses = teacher_chooses()});
  const bool counts = frame.facts.confident() >= 0;
  StepRecord record =
      counts ? stepper_->move(frame.gradient_pointers, frame.facts.loss(), frame.facts.sums(),
                              {.probed = frame.facts.probed(),
                               .images = independent(images),
                               .moved = frame.facts.moved()})
             : stepper_->pause(frame.facts.loss());
  record.step = totals_.steps + 1;
  record.batch = totals_.batches;
  record.confident = std::max<std::int64_t>(frame.facts.confident(), 0);
  record.times += runner_->times();
  if (record.refused) put_back(statistics);
  if (counts && !record.refused) after_step(record);
  count(record);
  if (counts && !record.refused && parts_.reset &&
      parts_.reset->is_due(record, frame.facts.logits())) {
    restart();
    ++totals_.resets;
  }
  steps.push_back(std::move(record));
  return frame;
}

void Adapter::after_step(const StepRecord& record) {
  if (parts_.teacher) parts_.teacher->follow();
  if (parts_.after_step.empty()) return;
  const c10::NoGradGuard no_grad;
  const StepView view{*arena_, source_on_device_, stepper_->layers(),
                      static_cast<std::uint64_t>(options_.seed)};
  for (const auto& part : parts_.after_step) part->after(view, record);
}

/// The logits that answer: those of the pass, or of another one after what moved.
at::Tensor Adapter::predict(Frame& frame, const std::vector<StepRecord>& steps) {
  Output answered{.features = frame.output.features, .logits = frame.logits};
  int first = kNoStage;
  if (options_.predict == PredictWith::kAfter && !steps.empty()) {
    for (const std::size_t layer : steps.back().selected()) first = std::min(first, stages_[layer]);
    const bool moved = !steps.back().refused && !steps.back().layers.empty();
    if (moved && (!parts_.after_step.empty() || parts_.reset))
      first = 0;  // anything may have changed
  }
  // A student that saw the view alone has not answered yet.
  const bool unanswered =
      !steps.empty() && options_.answer == AnswerWith::kStudent && !parts_.loss->needs().images;
  if (!unanswered && first == kNoStage && !parts_.readout) return answered.logits;
  const PassRunner::Apart apart;
  if (unanswered) {
    answered = model_.forward(frame.images, /*update_statistics=*/false);
  } else if (first != kNoStage) {
    answered = model_.forward_again(frame.output, frame.images, first);
  }
  return parts_.readout ? parts_.readout->correct(answered) : answered.logits;
}

// What stands around it.

Adapter::Adapter(Model& model, const MethodOptions& options, AdapterSetup setup)
    : model_(model),
      loan_(model),
      options_(options),
      run_(setup.run),
      parts_(std::move(setup.parts)),
      guard_(options.guard, model.classes()) {
  own_parts_ = make_parts(options, parts_);
  const NormMode mode =
      options.norm.empty() ? loan_.norm_mode_before() : NormMode::parse(options.norm);
  options_.norm = mode.to_string();
  parts_.selector->name_run(run_name());
  Fit found = fit(model, options, parts_, static_cast<bool>(setup.source_images));
  model.set_norm_mode(mode);
  if (mode.kind == NormKind::kAdaptive) spread_ = std::make_unique<LabelSpread>(model.classes());
  options_.partition = found.granularity;
  options_.head = found.head ? HeadRule::kAdapt : HeadRule::kFreeze;
  std::vector<NamedTensor> named;
  for (const Parameter* parameter : found.adapted) {
    named.push_back({parameter->name, parameter->value});
  }
  arena_.emplace(named);
  for (std::size_t i = 0; i < named.size(); ++i) found.adapted[i]->value = arena_->leaf(i);
  // What does not adapt takes no gradient, also where training gave it some.
  for (Parameter& parameter : model.parameters()) {
    if (std::find(found.adapted.begin(), found.adapted.end(), &parameter) == found.adapted.end()) {
      parameter.value = parameter.value.detach();
    }
  }
  for (const Layer& layer : found.layers.layers) {
    int first = kNoStage;
    for (const std::size_t t : layer.tensors) first = std::min(first, found.adapted[t]->stage);
    stages_.push_back(first);
  }
  model.keep_activations(options.predict == PredictWith::kAfter);
  stepper_ = std::make_unique<Stepper>(arena_->layout(), arena_->values().mutable_data_ptr<float>(),
                                       std::move(found.layers), std::move(parts_.optimizer),
                                       std::move(parts_.selector),
                                       std::make_unique<TorchWorkspace>(model.device()));
  attach_parts(found.adapted, setup.source_images);
  runner_ = std::make_unique<PassRunner>(
      model, *arena_, stepper_->layers(),
      PassRunner::Pass{.begin = [this](Frame& frame, PassKind kind,
                                       WorkQueue& queue) { pass(frame, kind, queue); },
                       .look = [this](Frame& frame, std::int64_t room) { look(frame, room); },
                       .end = [this](Frame& frame, WorkQueue& queue) { come_back(frame, queue); }},
      PassRunner::Options{.capture = setup.capture, .profile = setup.profile});
  travelled_.assign(layers().size(), 0.0);
  source_ = take_snapshot();
  source_norm_ = std::max(std::sqrt(squared_norm(source_.values)), 1e-150);
  if (!parts_.after_step.empty()) source_on_device_ = arena_->values().clone();
  healthy_ = source_;
  reset();
}

/// Introduces the parts to the source model and to each other.
void Adapter::attach_parts(const std::vector<Parameter*>& slots, const SourceImages& images) {
  if (const Spec spec = stepper_->probe(); !spec.name.empty()) {
    probe_ = make_probe(spec);
    probe_->attach(*arena_, layers());
  }
  if (parts_.view) parts_.view->attach(model_.device(), model_.preprocessing());
  if (parts_.store) parts_.store->attach(model_.device(), model_.classes());
  if (stepper_->idle()) parts_.drift.reset();
  if (parts_.drift) parts_.drift->learn(model_, images);
  const at::Tensor drift = parts_.drift ? parts_.drift->value() : at::Tensor();
  const Teacher::Site site{model_, *arena_, slots, parts_.view.get(), drift};
  if (parts_.teacher) parts_.teacher->attach(site);
  if (parts_.loss->needs().source) {
    anchor_ = std::make_unique<SourceTeacher>("anchor");
    anchor_->attach(site);
  }
  if (parts_.readout) parts_.readout->attach(model_);
  if (parts_.penalty && !stepper_->idle()) parts_.penalty->learn(model_, *arena_, images);
  if (parts_.penalty) parts_.penalty->scale_by(drift);
}

Adapter::~Adapter() {
  try {
    const auto scope = runner_->enter();
    restore(source_);
    runner_->finish();
  } catch (const std::exception&) {
    // A device that is broken says so to the next who uses it.
  }
}

std::string Adapter::run_name() const {
  if (!run_.empty()) return run_;
  return fmt::format("{} {} {} {} {} {}", model_.spec().to_string(), options_.loss,
                     options_.optimizer, options_.norm, options_.inner_steps, options_.adapt_every);
}

/// The running statistics where the norm mode moves them, a teacher's among them; else nothing.
std::vector<at::Tensor> Adapter::moving_statistics() const {
  std::vector<at::Tensor> all;
  if (!model_.norm_mode().keeps_statistics()) return all;
  for (const Statistic& each : model_.statistics()) all.push_back(*each.value);
  for (const Teacher* teacher : {parts_.teacher.get(), static_cast<Teacher*>(anchor_.get())}) {
    if (!teacher) continue;
    for (const at::Tensor& each : teacher->statistics()) all.push_back(each);
  }
  return all;
}

std::vector<at::Tensor> Adapter::copy_statistics() const {
  std::vector<at::Tensor> copies = moving_statistics();
  for (at::Tensor& each : copies) each = each.clone();
  return copies;
}

void Adapter::put_back(const std::vector<at::Tensor>& statistics) {
  const c10::NoGradGuard no_grad;
  const std::vector<at::Tensor> current = moving_statistics();
  for (std::size_t i = 0; i < statistics.size(); ++i) current[i].copy_(statistics[i]);
}

/// How many images drawn by themselves would say as much as these.
double Adapter::independent(const at::Tensor& images) const {
  return static_cast<double>(images.size(0)) / (spread_ ? spread_->value() : 1);
}

bool Adapter::adapts_now() const {
  return !stopped_ && !stepper_->idle() && (totals_.batches - 1) % options_.adapt_every == 0;
}

void Adapter::count(const StepRecord& record) {
  ++totals_.steps;
  totals_.refused += record.refused;
  totals_.skipped += record.skipped();
  for (std::size_t l = 0; l < record.layers.size(); ++l) {
    totals_.chosen[l] += record.layers[l].weight == 1;
    totals_.weight[l] += record.layers[l].weight;
    const double way = std::abs(record.layers[l].weight) * record.layers[l].update_norm;
    totals_.path[l] += way;
    travelled_[l] += way;
  }
}

void Adapter::reset() {
  restore(source_);
  stepper_->reset();
  for_each_part([](Part& part) { part.reset(); });
  guard_.forget(/*all=*/true);
  if (spread_) {
    spread_->reset();
    model_.set_label_spread(1);
  }
  healthy_ = source_;
  totals_ = {};
  totals_.chosen.assign(layers().size(), 0);
  totals_.weight.assign(layers().size(), 0.0);
  totals_.path.assign(layers().size(), 0.0);
  stopped_ = false;
}

void Adapter::restart() {
  healthy_ = source_;
  begin_at(source_);
}

/// Goes on from parameters and statistics, without a past.
void Adapter::begin_at(const Snapshot& snapshot) {
  restore(snapshot);
  stepper_->restart();
  for_each_part([](Part& part) { part.restart(); });
}

}  // namespace gala
