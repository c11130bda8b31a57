#include "gala/adapt/pass_runner.h"

#include <ATen/ATen.h>

#include <utility>

#include "gala/base/stopwatch.h"

namespace gala {
namespace {

/// Where the phases are not timed apart, all of the pass counts as forward; an answer has no others.
StepTimes pass_times(const WorkQueue& queue, PassKind kind, double whole) {
  if (!queue.times_phases() || !adapts(kind)) return {.forward = whole};
  return {.copy = queue.phase_time(1),
          .forward = queue.phase_time(2),
          .backward = queue.phase_time(3),
          .measure = queue.phase_time(4)};
}

}  // namespace

PassRunner::PassRunner(Model& model, const ParameterArena& arena, const LayerPartition& layers,
                       Pass pass, const Options& options)
    : model_(model),
      arena_(arena),
      layers_(layers),
      pass_(std::move(pass)),
      options_(options),
      queue_(WorkQueue::make(model.device())) {
  queue_->time_phases(options.profile);
}

Frame& PassRunner::run(const at::Tensor& images, PassKind kind, bool can_be_captured) {
  const bool captures =
      options_.capture && queue_->captures() && can_be_captured && capture_problem_.empty();
  const Frames::Key key{images.size(0), images.size(2), images.size(3), kind,
                        model_.norm_mode().to_string()};
  Stopwatch watch;
  Frame& frame = frames_.find(key, [&] {
    return Frame{.facts = {layers_, images.size(0), model_.classes(), model_.device()}};
  });
  queue_->mark(0);
  if (!frame.work) {
    frame.forget_results();  // before the pass makes new ones
    frame.images = images.to(model_.device(), /*dtype=*/at::kFloat, /*non_blocking=*/true);
    if (captures && frames_.repeats(key)) capture(frame, kind);
  } else {
    frame.images.copy_(images, /*non_blocking=*/true);
  }
  if (frame.work) {
    frame.work->replay();
  } else {
    const Uncaptured uncaptured;
    pass_(frame, kind, *queue_);
  }
  frame.output.logits = frame.output.logits.detach();
  frame.output.features = frame.output.features.detach();
  frame.logits = frame.logits.detach();
  // What a captured pass writes to, the next one overwrites.
  if (frame.work) frame.answer = frame.logits.clone();
  queue_->wait();
  times_ = pass_times(*queue_, kind, watch.lap());
  return frame;
}

void PassRunner::capture(Frame& frame, PassKind kind) {
  frame.images = frame.images.clone(model_.memory_format());
  try {
    frame.work = queue_->capture([&] { pass_(frame, kind, *queue_); });
  } catch (const std::exception& problem) {
    capture_problem_ = problem.what();
    frame.forget_results();
    Gradients::take(arena_);
  }
}

void PassRunner::finish() {
  queue_->wait();
  frames_ = Frames{};
}

bool Frames::repeats(const Key& key) {
  if (seen_.size() >= kMostSeen) seen_.clear();
  return ++seen_[key] > 1 && frames_.size() <= kMost;
}

void Frames::forget_uncaptured() {
  std::erase_if(frames_, [](const auto& entry) { return !entry.second.work; });
}

}  // namespace gala
