#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "gala/adapt/frame.h"
#include "gala/device/capture_gate.h"
#include "gala/device/work_queue.h"
#include "gala/model/model.h"
#include "gala/step/step_record.h"
#include "gala/tensor/arena.h"

namespace gala {

/// The frames of a runner. A pass whose shape comes a second time is captured, where the device can,
/// and replayed from then on; shapes that do not repeat are never captured.
class Frames {
 public:
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, PassKind, std::string>;

  /// The frame for a key, made by `make` where there is none yet.
  template <class Make>
  Frame& find(const Key& key, const Make& make) {
    const auto found = frames_.find(key);
    if (found != frames_.end()) return found->second;
    if (frames_.size() >= kMost) forget_uncaptured();
    return frames_.emplace(key, make()).first->second;
  }
  /// Counts a pass; true when it should be captured now.
  bool repeats(const Key& key);

 private:
  static constexpr std::size_t kMost = 8, kMostSeen = 256;

  void forget_uncaptured();

  std::map<Key, Frame> frames_;
  std::map<Key, int> seen_;
};

/// Runs passes on the device of a model: at once on the CPU; on a GPU on a stream of its own, queued
/// operation by operation or, where shapes repeat, as captured graphs.
class PassRunner {
 public:
  /// Queues a pass over the images of a frame, and marks the ends of its phases on the queue. A pass in pieces
  /// begins by noting a number (Facts::note_number): of images that must be looked at again, or a choice; the host waits
  /// for it, asks for the look with room for so many, or with that choice, and then for the end. Else there is the begin alone.
  struct Pass {
    std::function<void(Frame& frame, PassKind kind, WorkQueue& queue)> begin;
    std::function<void(Frame& frame, std::int64_t room)> look = {};
    std::function<void(Frame& frame, WorkQueue& queue)> end = {};
  };
  /// How a pass is to be run.
  struct Way {
    bool captured = true;  ///< where the device can, and shapes repeat
    bool in_pieces = false;
    bool chooses = false;  ///< in pieces: the number is a choice
  };

  struct Options {
    bool capture = true;   ///< replay passes over shapes that repeat as captured graphs
    bool profile = false;  ///< time the phases of a pass apart
  };

  /// Model, arena and layers outlive this.
  PassRunner(Model& model, const ParameterArena& arena, const LayerPartition& layers, Pass pass,
             const Options& options);

  /// The queue is current while the scope lives; a pass runs inside one.
  std::unique_ptr<WorkQueue::Scope> enter() { return queue_->enter(); }
  /// Runs a pass and waits for it. The frame is that of the images' shape, and stays until the next
  /// pass.
  Frame& run(const at::Tensor& images, PassKind kind, Way way);
  /// How many of `all` (a tensor of so many rows) are looked at where `number` must be: on a GPU more, so that
  /// shapes come again, since for each that it has not seen cuDNN looks for the fastest way anew.
  static std::int64_t room_for(std::int64_t number, const at::Tensor& all);
  /// Where the time of the newest pass went.
  const StepTimes& times() const { return times_; }
  /// For passes that are no part of a step: while it lives, nobody captures, and there are no gradients.
  struct Apart {
    c10::NoGradGuard no_grad;
    Uncaptured uncaptured;
  };

  /// Waits for the device and forgets all frames; inside a scope.
  void finish();
  /// Why passes are not captured although the device could, or empty.
  const std::string& capture_problem() const { return capture_problem_; }

 private:
  void capture(Frame& frame, PassKind kind, bool in_pieces);
  void go_on(Frame& frame, bool captures, bool chooses);

  Model& model_;
  const ParameterArena& arena_;
  const LayerPartition& layers_;
  Pass pass_;
  Options options_;
  std::unique_ptr<WorkQueue> queue_;
  Frames frames_;
  StepTimes times_;
  std::string capture_problem_;
};

}  // namespace gala
