#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gala/adapt/pass_runner.h"
#include "gala/loss/loss.h"
#include "gala/method/method_options.h"
#include "gala/method/method_parts.h"
#include "gala/method/probe.h"
#include "gala/model/model.h"
#include "gala/step/guard.h"
#include "gala/step/label_spread.h"
#include "gala/step/step_record.h"
#include "gala/step/stepper.h"

namespace gala {

/// What an adapter needs to know beside the method.
struct AdapterSetup {
  bool capture = true;   ///< on a GPU, replay passes over shapes that repeat as captured graphs
  bool profile = false;  ///< on a GPU, time the phases of a step apart; costs a little
  /// Tells this run from others where a selector draws by run (`random:draws=run`); the key in `gala
  /// run`. Empty: network, loss, optimizer, norm mode and steps tell them apart.
  std::string run = {};
  MethodParts parts = {};           ///< parts of your own
  SourceImages source_images = {};  ///< for parts that learn from them (open_source_images)
};

/// The answer to a batch. Where the adapted model's answer to an image is not finite, the source
/// model with its own statistics answers in its place; where that is not finite either, nobody does.
struct Answer {
  at::Tensor logits;  ///< [N, classes], on the model's device; not finite where nobody answers
  std::vector<std::int64_t> predictions;  ///< the largest logit of each image, or kNoClass (-1)
  std::vector<std::int64_t> from_source;  ///< numbers of the images the source model answered
  std::vector<std::int64_t> unanswered;   ///< numbers of the images that nobody answered
  at::Tensor adapted;  ///< in shadow mode: what would have been the answer; else undefined
  std::vector<StepRecord> steps;      ///< what was done on the way
  std::optional<HealthEvent> health;  ///< when the guard judged
};

/// What happened since the start or the last reset.
struct AdapterTotals {
  std::int64_t batches = 0;
  std::int64_t steps = 0;    ///< optimizer steps, refused ones included
  std::int64_t refused = 0;  ///< loss, gradient or update not finite
  std::int64_t skipped = 0;  ///< no layer passed
  std::int64_t rollbacks = 0;
  std::int64_t resets = 0;  ///< by the method's own rule
  std::int64_t from_source =
      0;                        ///< answers of the source model, the adapted one's not being finite
  std::int64_t unanswered = 0;  ///< images without a finite answer
  std::vector<std::int64_t> chosen;  ///< by layer: steps at which it moved by its whole update
  std::vector<double> weight;  ///< by layer: Σ weights, the shares of its updates that were applied
  std::vector<double> path;    ///< by layer: Σ |applied update|
};

/// Adapts a classifier to the batches it answers.
///
///   gala::Adapter adapter(model, {.loss = "shot", .select = "gala"});
///   at::Tensor logits = adapter.answer(images).logits;
///
/// It borrows the model: while it lives, its own parameters lie in the model's slots, and no other
/// adapter can have them; when it ends, the model is the source model again, in the norm mode it had.
/// Save or copy adapted weights before. It must not outlive the model. Not for several threads at once.
class Adapter {
 public:
  explicit Adapter(Model& model, const MethodOptions& options = {}, AdapterSetup setup = {});
  ~Adapter();
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  /// Answers images [N, 3, H, W] (float32, preprocessed, any device) and adapts to them.
  Answer answer(const at::Tensor& images);

  /// Back to the source: parameters, statistics, moments, displacement, clock, counts.
  void reset();

  /// The same, but counts, guard and draws go on: for a stream that begins anew from the source.
  void restart();

  Model& model() { return model_; }
  const Model& model() const { return model_; }
  const ParameterArena& parameters() const { return *arena_; }
  const LayerPartition& layers() const { return stepper_->layers(); }
  const AdapterTotals& totals() const { return totals_; }
  const Guard& guard() const { return guard_; }
  /// True after the guard stopped adaptation.
  bool stopped() const { return stopped_; }
  /// Why passes are not captured although the device could, or empty.
  const std::string& capture_problem() const { return runner_->capture_problem(); }
  /// |θ - θ_source| of every layer.
  std::vector<double> net_displacement() const;

  /// Everything that later steps depend on.
  State save() const;
  /// Goes on from a saved state; throws Error, and changes nothing, when it does not fit.
  void load(const State& state);

 private:
  /// What is minimised in a pass.
  struct Objective {
    LossTerms terms;
    at::Tensor weights = {};  ///< of the images; undefined where all count alike
    at::Tensor gate = {};     ///< not finite: no moment moves
  };
  /// By whose statistics the source's parameters answer.
  enum class Witness {
    kPresent,  ///< as the network at hand normalises now
    kBatch,
    kSource
  };
  /// What the network saw last, and its own answers on the host.
  struct Seen {
    at::Tensor images, logits;
  };
  /// Parameters and statistics, in host memory.
  struct Snapshot {
    at::Tensor values;
    std::vector<at::Tensor> buffers;
    std::vector<double> travelled;  ///< see below
  };

  bool adapts_now() const;
  std::vector<at::Tensor> moving_statistics() const;
  std::vector<at::Tensor> copy_statistics() const;
  void put_back(const std::vector<at::Tensor>& statistics);
  void pass(Frame& frame, PassKind kind, WorkQueue& queue);
  void leave_for_look(Frame& frame, Weighed weighed, WorkQueue& queue);
  void look(Frame& frame, std::int64_t room);
  void come_back(Frame& frame, WorkQueue& queue);
  bool counts_images() const;
  bool teacher_chooses() const;
  bool in_pieces() const;
  void lend_gradients(const at::Tensor& sums);
  void take_gradients(Frame& frame);
  Weighed weigh(const Output& student, const at::Tensor& allowed);
  at::Tensor ages() const;
  Output look_again(const Frame& frame, const Weighed& weighed, std::int64_t room);
  Objective objective(Frame& frame, const Output& student, const Weighed& weighed,
                      std::int64_t room);
  void differentiate(Frame& frame, Objective& objective);
  static void close_where_none_counts(Objective& aim);
  void measure(Frame& frame, const Objective& aim, const at::Tensor& probed, WorkQueue& queue);
  at::Tensor probe(const Frame& frame);
  Output ask_student(Frame& frame, PassKind kind);
  at::Tensor look_by_view(const at::Tensor& images);
  void ask_teacher(Frame& frame, bool adapting);
  void settle_answer(Frame& frame) const;
  bool can_be_captured() const;
  void attach_parts(const std::vector<Parameter*>& slots, const SourceImages& images);
  Frame& adapt_to(const at::Tensor& images, std::vector<StepRecord>& steps);
  Frame& adapt_once(const at::Tensor& images, bool first_of_batch, std::vector<StepRecord>& steps);
  void after_step(const StepRecord& record);
  at::Tensor predict(Frame& frame, const std::vector<StepRecord>& steps);
  void count(const StepRecord& record);
  double independent(const at::Tensor& images) const;
  static BatchHealth look_at_rows(const at::Tensor& host_logits);
  static std::vector<std::int64_t> fill_in(Answer& answer, const at::Tensor& logits,
                                           const std::vector<std::int64_t>& numbers);
  std::string run_name() const;
  at::Tensor answer_from_source(const at::Tensor& images, Witness witness = Witness::kSource);
  void answer_again(Answer& answer, const at::Tensor& images);
  void put_in_shadow(Answer& answer, const at::Tensor& images);
  void watch(Answer& answer, BatchHealth health, const Seen& seen);
  Snapshot take_snapshot() const;
  void restore(const Snapshot& snapshot);
  void begin_at(const Snapshot& snapshot);
  HealthEvent judge(const Seen& seen);
  void compare_with_source(const Seen& seen);
  at::Tensor difference_from_source() const;
  double relative_displacement() const;
  bool keeps_healthy() const;
  void put_in(const State& state);
  std::string fingerprint() const;
  nlohmann::ordered_json settings() const;
  /// Calls `use` with each of the parts that remember.
  template <class Use>
  void for_each_part(const Use& use) const {
    parts_.for_each(use);
    if (probe_) use(*probe_);
    if (anchor_) use(*anchor_);
  }

  Model& model_;
  Model::Loan loan_;
  MethodOptions options_;         ///< with every default decided
  std::string run_;               ///< AdapterSetup::run
  MethodParts parts_;             ///< but for optimizer and selector, which are the stepper's
  std::unique_ptr<Probe> probe_;  ///< the selector's, where it has one
  std::unique_ptr<SourceTeacher> anchor_;  ///< where the loss asks the source model
  std::vector<std::string> own_parts_;     ///< types of the parts that the options do not name
  Guard guard_;
  std::unique_ptr<LabelSpread> spread_;  ///< where the norm mode asks for it
  std::optional<ParameterArena> arena_;
  std::unique_ptr<Stepper> stepper_;
  std::unique_ptr<PassRunner> runner_;
  std::vector<int> stages_;        ///< by layer: the first stage of the network that depends on it
  std::vector<double> travelled_;  ///< by layer: the way from the source, Σ |applied update|
  double source_norm_ = 0;
  Snapshot source_;
  at::Tensor source_on_device_;  ///< where something is done after steps
  Snapshot healthy_;
  AdapterTotals totals_;
  bool stopped_ = false;
};

}  // namespace gala
