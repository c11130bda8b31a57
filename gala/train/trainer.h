#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "gala/data/loader.h"
#include "gala/device/process_group.h"
#include "gala/model/model.h"
#include "gala/optim/optimizer.h"
#include "gala/tensor/arena.h"
#include "gala/tensor/state.h"
#include "gala/tensor/torch_workspace.h"
#include "gala/train/plan.h"
#include "gala/train/setup.h"

namespace gala {

/// Mean cross-entropy of logits [N, classes] against labels [N] (int64); `smoothing` is the share of
/// each label that is spread evenly over all classes.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double smoothing = 0);

/// How far the answers to several views of the same images lie apart: the mean over images of the
/// Jensen-Shannon divergence of their probabilities (AugMix, Hendrycks et al. 2020), that is the mean
/// over views of KL(p_view || mean of all views). Logits [views * N, classes], view after view.
at::Tensor view_divergence(const at::Tensor& logits, std::int64_t views);

/// How the steps since the last look went, on the batches they learned from.
struct Meter {
  std::int64_t steps = 0;
  double loss = 0;
  double accuracy = 0;  ///< 0 to 1
};

/// Trains a network by supervised steps over the batches of a stream.
///
///   Trainer trainer(*training.model, make_curriculum(training, plan), plan);
///   while (trainer.step()) { ... }
///
/// It puts its own parameters into the model's slots and must not outlive the model. Where it stands
/// can be saved after any step; on the CPU, with the same number of threads, a run that goes on from
/// there ends in the same bytes.
///
/// With several processes each gets the same model, curriculum and plan and learns from its part of every
/// batch: gradients are summed over all of them, batch statistics are those of the whole batch, and after each
/// step all have the same weights, those of a single process but for rounding. They make the same calls.
class Trainer {
 public:
  /// The model is on its device already; it gets the plan's precision and, on a GPU, its memory
  /// layout. Throws ConfigError when the stream fills no batch. The other processes, if there are any, must
  /// outlive the trainer.
  Trainer(Model& model, Curriculum curriculum, const TrainPlan& plan, int loader_threads = 2,
          ProcessGroup* processes = nullptr);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Learns from the next batch; false, and nothing happens, when there is none left. Does not wait
  /// for a GPU.
  bool step();

  std::int64_t steps_done() const { return done_; }
  std::int64_t steps_total() const { return schedule_.total; }
  std::int64_t steps_per_epoch() const { return per_epoch_; }
  /// Epochs completed.
  std::int64_t epochs_done() const { return done_ / per_epoch_; }
  bool at_epoch_end() const { return done_ % per_epoch_ == 0; }
  bool finished() const { return done_ == schedule_.total; }
  /// True when the plan wants an evaluation now: after so many epochs, or, with sampling per_domain,
  /// after step 0, so many steps later, and so on, counted as DomainBed counts; and, where the best
  /// weights are kept, at the end.
  bool evaluation_due() const;
  /// Of the next step, or of the last one when there is none left.
  double learning_rate() const;

  /// Looks at loss and accuracy since the last look; waits for the device. Throws Error when the loss
  /// has become infinite or not a number.
  Meter read_meter();

  /// What decides the outcome, for files: a run can only go on from a state with equal settings.
  const nlohmann::json& settings() const { return settings_; }
  State save() const;
  /// Goes on from a saved state. Throws ConfigError, naming the setting, when it is of another run.
  void load(const State& state);

 private:
  void open_loader();
  /// The sum over all processes.
  void share(Gradients& gradients);

  Model& model_;
  Curriculum curriculum_;
  TrainPlan::TrainPart options_;
  bool has_epochs_;
  int loader_threads_;
  ProcessGroup* processes_;
  std::unique_ptr<Optimizer> optimizer_;
  double full_rate_ = 0;
  Schedule schedule_;
  std::int64_t per_epoch_ = 0;
  std::int64_t done_ = 0;
  nlohmann::json settings_;

  LayerPartition layers_;  ///< a single one: everything moves
  std::optional<ParameterArena> arena_;
  std::optional<TorchWorkspace> workspace_;
  at::Tensor shared_;  ///< gradients on their way between processes, laid out as the arena
  std::unique_ptr<Loader> loader_;
  at::Tensor loss_sum_, correct_;  ///< since the last look, on the device
  std::int64_t metered_steps_ = 0, metered_images_ = 0;
};

}  // namespace gala
