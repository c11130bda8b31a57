#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
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
  /// `probed` is double [layers], or undefined.
  void note(const at::Tensor& logits, const LossTerms* terms, const at::Tensor& probed,
            WorkQueue& queue);

  // On the host, after the queue was waited for.
  double loss() const { return *loss_.const_data_ptr<float>(); }
  /// -1 where a sample rule let no image count.
  std::int64_t confident() const {
    return static_cast<std::int64_t>(*confident_.const_data_ptr<float>());
  }
  /// The sums of every layer; the next pass overwrites them.
  std::span<const LayerSums> sums();
  /// What a probe found, by layer; the next pass overwrites it.
  std::span<const double> probed() const {
    return {probed_.const_data_ptr<double>(), sums_.size()};
  }
  /// [N, classes] float32; the next pass overwrites them.
  const at::Tensor& logits() const { return logits_; }

 private:
  at::Tensor loss_, confident_, logits_, probed_, host_table_;  ///< on the host, pinned for a GPU
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

  void forget_results() {
    output = {};
    taught = {};
    anchored = {};
    logits.reset();
    gradients = {};
    gradient_pointers.clear();
  }
};

}  // namespace gala
