#include "gala/adapt/pass_runner.h"

#include <ATen/ATen.h>

#include <algorithm>
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

Frame& PassRunner::run(const at::Tensor& images, PassKind kind, Way way) {
  const auto captures = [&] {
    return options_.capture && queue_->captures() && way.captured && capture_problem_.empty();
  };
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
    if (captures() && frames_.repeats(key)) capture(frame, kind, way.in_pieces);
  } else {
    frame.images.copy_(images, /*non_blocking=*/true);
  }
  if (frame.work) {
    frame.work->replay();
  } else {
    const Uncaptured uncaptured;
    pass_.begin(frame, kind, *queue_);
  }
  if (way.in_pieces) go_on(frame, captures(), way.chooses);
  frame.output.logits = frame.output.logits.detach();
  frame.output.features = frame.output.features.detach();
  frame.logits = frame.logits.detach();
  // What a captured pass writes to, the next one overwrites.
  if (frame.work) frame.answer = frame.logits.clone();
  queue_->wait();
  times_ = pass_times(*queue_, kind, watch.lap());
  return frame;
}

std::int64_t PassRunner::room_for(std::int64_t number, const at::Tensor& all) {
  constexpr std::int64_t kSteps = 32;
  if (all.is_cpu()) return number;
  return std::min(std::max<std::int64_t>((number + kSteps - 1) / kSteps, 1) * kSteps, all.size(0));
}

/// The middle piece and the last. A look is captured when as many images, or the same choice, come a second time; it must not
/// overwrite what the first piece left for the last, so it has a room of its own.
void PassRunner::go_on(Frame& frame, bool captures, bool chooses) {
  queue_->wait();
  const std::int64_t number = frame.facts.number();
  const std::int64_t room = chooses ? number : room_for(number, frame.images);
  Pieces::Look& look = frame.pieces.looks[room];
  if (frame.work && captures && !look.work && look.seen++ > 0) {
    try {
      look.work = queue_->capture([&] { pass_.look(frame, room); }, /*room=*/1);
    } catch (const std::exception& problem) {
      capture_problem_ = problem.what();
      Gradients::take(arena_);
    }
  }
  if (look.work) {
    look.work->replay();
  } else {
    const Uncaptured uncaptured;
    pass_.look(frame, room);
  }
  if (frame.pieces.end) return frame.pieces.end->replay();
  const Uncaptured uncaptured;
  pass_.end(frame, *queue_);
}

void PassRunner::capture(Frame& frame, PassKind kind, bool in_pieces) {
  frame.images = frame.images.clone(model_.memory_format());
  try {
    frame.work = queue_->capture([&] { pass_.begin(frame, kind, *queue_); });
    if (in_pieces) frame.pieces.end = queue_->capture([&] { pass_.end(frame, *queue_); });
  } catch (const std::exception& problem) {
    capture_problem_ = problem.what();
    frame.work.reset();
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
