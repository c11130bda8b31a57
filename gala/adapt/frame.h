#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "gala/device/work_queue.h"
#include "gala/layer/layer.h"
#include "gala/layer/layer_sums.h"
#include "gala/loss/loss.h"
#include "gala/model/model.h"
#include "gala/tensor/arena.h"

namespace gala {

/// What the host must know of a pass, brought over as one piece of work.
class Facts {
 public:
  Facts(const LayerPartition& layers, std::int64_t images, std::int64_t classes, at::Device device);

  /// Where the optimizer leaves its sums: double [layers, kSumColumns], on the device.
  const at::Tensor& table() const { return table_; }
  /// Queues what else is to be known, and the copy to the host.
  /// `probed` is double [layers], or undefined; `moved` see Output.
  void note(const at::Tensor& logits, const LossTerms* terms, const at::Tensor& probed,
            const at::Tensor& moved, WorkQueue& queue);

  // On the host, after the queue was waited for.
  double loss() const { return *loss_.const_data_ptr<float>(); }
  /// Queues a number (int64, no dimensions) to be brought to the host.
  void note_number(const at::Tensor& number, WorkQueue& queue);
  std::int64_t number() const { return *number_.const_data_ptr<std::int64_t>(); }
  /// -1 where a sample rule let no image count.
  std::int64_t confident() const {
    return static_cast<std::int64_t>(*confident_.const_data_ptr<float>());
  }
  /// How far the norm layers are from the source's statistics, from 0 to 1 (Output::moved); 1 where nobody says.
  double moved() const { return *moved_.const_data_ptr<float>(); }
  /// The sums of every layer; the next pass overwrites them.
  std::span<const LayerSums> sums();
  /// What a probe found, by layer; the next pass overwrites it.
  std::span<const double> probed() const {
    return {probed_.const_data_ptr<double>(), sums_.size()};
  }
  /// [N, classes] float32; the next pass overwrites them.
  const at::Tensor& logits() const { return logits_; }

 private:
  at::Tensor loss_, confident_, moved_, logits_, probed_, host_table_,
      number_;        ///< on the host, pinned for a GPU
  at::Tensor table_;  ///< the same as host_table_ on the CPU
  std::vector<LayerSums> sums_;
};

/// What a pass does.
enum class PassKind {
  kAdapt,       ///< forward, loss, backward, measure
  kAdaptAgain,  ///< the same on a batch whose statistics were taken already
  kAnswer,      ///< forward alone
  kAnswerStill  ///< the same, and running statistics stay as they are
};
constexpr bool adapts(PassKind kind) {
  return kind == PassKind::kAdapt || kind == PassKind::kAdaptAgain;
}

/// What a sample rule says before any image was looked at again.
struct Weighed {
  at::Tensor weights =
      {};  ///< [N]; undefined where all count alike, or must be looked at again first
  at::Tensor allowed = {};  ///< [N], 0 where an image cannot count; undefined: all can
  at::Tensor order =
      {};  ///< numbers of the images, first those to be looked at again; undefined: none
  at::Tensor number = {};  ///< of those
};

/// What a pass in pieces keeps from one to the next, in places that stay: each may be captured by itself.
struct Pieces {
  /// The middle piece, for so many images that are looked at again.
  struct Look {
    int seen = 0;
    std::unique_ptr<CapturedWork> work = {};
  };
  Weighed weighed = {};
  at::Tensor student =
      {};                ///< the student's logits as a leaf, whose gradient the middle piece leaves
  at::Tensor sums = {};  ///< the arena's gradients, one piece's added to the other's
  at::Tensor probed = {};
  at::Tensor gate = {};
  LossTerms terms = {};
  std::map<std::int64_t, Look> looks = {};
  std::unique_ptr<CapturedWork> end = {};  ///< with Frame::work, or null
};

/// What belongs to a pass over batches of one shape.
struct Frame {
  at::Tensor images = {};
  Output output = {};      ///< the student's
  Output taught = {};      ///< the teacher's, where there is one
  Output anchored = {};    ///< the source model's, where the loss asks for it
  at::Tensor logits = {};  ///< what answers: the student's, the teacher's, or both
  Gradients gradients = {};
  std::vector<const float*> gradient_pointers = {};  ///< where those lie
  Facts facts;
  at::Tensor answer = {};                   ///< of captured work: a copy of the logits that stays
  std::unique_ptr<CapturedWork> work = {};  ///< null: the pass is queued operation by operation
  Pieces pieces = {};                       ///< where it is one in pieces; `work` is the first

  void forget_results() {
    output = {};
    taught = {};
    anchored = {};
    logits.reset();
    gradients = {};
    gradient_pointers.clear();
    pieces = {};
  }
};

}  // namespace gala
