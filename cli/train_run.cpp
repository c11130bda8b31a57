#include "cli/train_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/failures.h"
#include "cli/opened_plan.h"
#include "cli/scores.h"
#include "cli/text.h"
#include "gala/adapt/state_file.h"
#include "gala/base/error.h"
#include "gala/base/interrupt.h"
#include "gala/base/stopwatch.h"
#include "gala/base/words.h"
#include "gala/device/peer_sockets.h"
#include "gala/device/process_group.h"
#include "gala/train/checkpoint_choice.h"
#include "gala/train/result.h"
#include "gala/train/setup.h"
#include "gala/train/shard.h"
#include "gala/train/trainer.h"

namespace gala {
namespace {

/// Steps between two looks at the loss, each of which waits for the device.
constexpr std::int64_t kLookEvery = 50;

/// How a run begins.
enum class Start { kAnew, kFromCheckpoint, kFinished };

/// One call of `gala train`, from opened files to the last line.
class TrainRun {
 public:
  explicit TrainRun(const TrainFlags& flags);
  int run();

 private:
  bool resume();
  Start find_start(State& state) const;
  void save_checkpoint() const;
  void look();
  void evaluate_if_due();
  void end_part();
  void learn();
  int stop();
  std::optional<Evaluation> evaluate_now();
  void print_heading() const;
  void print_score(const nlohmann::json& record) const;
  void print_weights(const nlohmann::json& record) const;

  const TrainFlags& flags_;
  OpenedPlan opened_;
  const TrainPlan& plan_;
  ProcessGroup* processes_;  ///< or null
  bool leads_;               ///< writes and speaks for all processes
  bool quiet_;
  std::filesystem::path out_, checkpoint_;
  int threads_;
  std::optional<Stream> evaluation_;
  Trainer trainer_;
  CheckpointChoice choice_;
  std::optional<Progress> progress_;
  Stopwatch part_watch_;
  double part_loss_ = 0, part_accuracy_ = 0;  ///< sums over the steps since the last line
  std::int64_t part_steps_ = 0;
  std::string score_;  ///< of an evaluation that the next line tells
};

int loader_threads(const TrainFlags& flags, const OpenedPlan& opened) {
  const at::Device device = opened.device;
  const std::int64_t here = opened.place ? opened.place->local_size : 1;
  const auto cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency() / here);
  const std::int64_t most = flags.threads > 0 ? std::min(flags.threads, cores) : cores;
  // A CPU needs its cores for the network; a GPU is fed by all but the one that drives it.
  const std::int64_t of_use = device.is_cuda() ? std::clamp<std::int64_t>(cores - 1, 1, 32) : 2;
  return static_cast<int>(std::min(most, of_use));
}

TrainRun::TrainRun(const TrainFlags& flags)
    : flags_(flags),
      opened_(open_plan(flags)),
      plan_(opened_.plan),
      processes_(opened_.processes.get()),
      leads_(opened_.leads()),
      quiet_(flags.quiet || !leads_),
      out_(plan_.output.weights),
      checkpoint_(plan_.output.weights + ".checkpoint"),
      threads_(loader_threads(flags, opened_)),
      trainer_(*opened_.training.model, make_curriculum(opened_.training, plan_), plan_, threads_,
               processes_),
      choice_(plan_.train.keep) {
  if (opened_.training.evaluation) evaluation_ = evaluation_stream(*opened_.training.evaluation);
}

/// What lies beside the output: the one place where it is looked at, for all processes.
Start TrainRun::find_start(State& state) const {
  const bool exists = std::filesystem::exists(checkpoint_);
  if (exists && !flags_.resume) {
    fail<ConfigError>("{} holds a run that was stopped: give --resume to go on, or remove the file",
                      checkpoint_.string());
  }
  if (exists) {
    state = read_state(checkpoint_);
    return Start::kFromCheckpoint;
  }
  if (!flags_.resume) return Start::kAnew;
  if (const auto record = find_record(out_, trainer_.settings())) {
    if (!quiet_) std::cerr << fmt::format("{} is finished already\n", out_.string());
    print_score(*record);
    print_weights(*record);
    return Start::kFinished;
  }
  if (!quiet_) std::cerr << "no checkpoint yet: starting from the beginning\n";
  return Start::kAnew;
}

/// False when there is nothing left to do.
bool TrainRun::resume() {
  State state;
  Start start = Start::kAnew;
  if (processes_) check_agreement(trainer_.settings(), *processes_);
  if (leads_) start = find_start(state);
  if (processes_) {
    start = static_cast<Start>(
        std::stoi(processes_->from_first(fmt::format("{}", static_cast<int>(start)))));
    if (start == Start::kFromCheckpoint) state = from_first(state, *processes_);
  }
  if (start == Start::kFromCheckpoint) {
    try {
      trainer_.load(state);
      choice_.load(state, *opened_.training.model);
    } catch (const std::exception& problem) {
      fail<ConfigError>("--resume {}: {}", checkpoint_.string(), in_words(problem));
    }
  }
  return start != Start::kFinished;
}

void TrainRun::look() {
  const Meter meter = trainer_.read_meter();
  const auto steps = static_cast<double>(meter.steps);
  part_loss_ += meter.loss * steps;
  part_accuracy_ += meter.accuracy * steps;
  part_steps_ += meter.steps;
  progress_->advance(trainer_.steps_done(),
                     fmt::format("loss {:.3f}  accuracy {}  rate {:.3g}", meter.loss,
                                 format_share(meter.accuracy), trainer_.learning_rate()));
}

std::optional<Evaluation> TrainRun::evaluate_now() {
  if (!evaluation_) return std::nullopt;
  return evaluate(*opened_.training.model, *evaluation_, threads_, processes_);
}

void TrainRun::save_checkpoint() const {
  if (!leads_) return;
  State state = trainer_.save();
  choice_.save(state);
  write_state(checkpoint_, state);
}

void TrainRun::evaluate_if_due() {
  const std::int64_t step = trainer_.steps_done();
  if (!trainer_.evaluation_due() || choice_.considered(step)) return;
  std::optional<Evaluation> scored;
  try {
    scored = evaluate_now();
  } catch (const Interrupted&) {
    save_checkpoint();  // the evaluation comes first when the run goes on
    throw;
  }
  const Evaluation& evaluation = *scored;
  const bool best = choice_.consider(*opened_.training.model, evaluation, step);
  score_ = fmt::format("  evaluation {}", format_share(evaluation.mean_accuracy()));
  if (evaluation.parts.size() > 1) {
    std::vector<std::string> parts;
    for (const Evaluation::Part& part : evaluation.parts) {
      parts.push_back(fmt::format("{} {}", part.domain, format_share(part.accuracy())));
    }
    score_ += fmt::format(" ({})", fmt::join(parts, ", "));
  }
  if (best && plan_.train.keep == Keep::kBest) score_ += ", the best so far";
}

/// A line about the epoch, or about the steps up to an evaluation.
void TrainRun::end_part() {
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, part_steps_));
  const bool epochs = plan_.data.sampling == Sampling::kShuffled;
  const std::string line = fmt::format(
      "{} {}/{}  loss {:.4f}  accuracy {}  rate {:.3g}{}  {}", epochs ? "epoch" : "step",
      epochs ? trainer_.epochs_done() : trainer_.steps_done(),
      epochs ? plan_.train.epochs : trainer_.steps_total(), part_loss_ / steps,
      format_share(part_accuracy_ / steps), trainer_.learning_rate(), score_,
      format_duration(part_watch_.lap() / 1000));
  progress_->clear();
  if (!quiet_) std::cerr << line << '\n';
  part_loss_ = part_accuracy_ = 0;
  part_steps_ = 0;
  score_.clear();
}

int TrainRun::stop() {
  progress_->clear();
  if (!leads_) return kInterruptedExit;
  std::cerr << fmt::format(
      "stopped after step {} of {}\nto go on: the same command with --resume\n",
      trainer_.steps_done(), trainer_.steps_total());
  return kInterruptedExit;
}

void TrainRun::learn() {
  const std::int64_t every = plan_.train.checkpoint_every;
  evaluate_if_due();  // a run may have been stopped between a step and its evaluation
  while (trainer_.step()) {
    const std::int64_t step = trainer_.steps_done();
    const bool part_ends = trainer_.at_epoch_end() || trainer_.evaluation_due();
    // All processes stop after the same step, whichever of them was asked to.
    const bool stopping = processes_ ? processes_->any(interrupted()) : interrupted();
    const bool saving = stopping || part_ends || (every > 0 && step % every == 0);
    if (saving || step % kLookEvery == 0) look();  // a broken state is not saved: it throws
    if (stopping) {
      save_checkpoint();
      throw Interrupted("stopped while training");
    }
    evaluate_if_due();
    if (saving) save_checkpoint();
    if (part_ends) end_part();
  }
}

int TrainRun::run() {
  if (!resume()) return 0;
  if (!quiet_) print_heading();
  progress_.emplace("step", trainer_.steps_total(), trainer_.steps_done(), quiet_);
  try {
    learn();
    progress_->clear();
    Model& model = *opened_.training.model;
    choice_.restore(model);
    round_weights(model, plan_.output.type);
    TrainingRecord record{.plan = plan_,
                          .settings = trainer_.settings(),
                          .steps = trainer_.steps_total(),
                          .kept_step = choice_.kept_step(trainer_.steps_total()),
                          .processes = processes_ ? processes_->size() : 1,
                          .history = choice_.history()};
    record.evaluation = evaluate_now();
    if (!leads_) return 0;
    if (evaluation_) record.evaluation_data = without_path(opened_.training.evaluation->spec);
    // The score is said even where the weights find no place; the checkpoint stays until they have.
    Failures failures;
    if (failures.attempt([&] { save_trained(model, record, out_); })) {
      std::filesystem::remove(checkpoint_);
    }
    print_score(record.to_json());
    failures.throw_if_any();
    print_weights(record.to_json());
  } catch (const Interrupted&) {
    return stop();
  } catch (const PeerLost& lost) {
    progress_->clear();
    const bool saved = leads_ && std::filesystem::exists(checkpoint_);
    fail("{}{}", lost.what(), saved ? "; to go on: the same commands with --resume" : "");
  }
  return 0;
}

void TrainRun::print_heading() const {
  const Training& training = opened_.training;
  std::int64_t count = 0;
  for (const Parameter& p : training.model->parameters()) count += p.value.numel();
  std::cerr << fmt::format("model   {} ({} parameters)\n", training.model->spec().to_string(),
                           with_commas(count));
  if (!plan_.model.init.empty()) std::cerr << "init    " << plan_.model.init << '\n';
  if (!training.prefix.empty()) {
    std::cerr << fmt::format("        names without their prefix \"{}\"\n", training.prefix);
  }
  if (!training.not_taken.empty()) {
    std::cerr << fmt::format("        not taken, for the classes are others: {}\n",
                             fmt::join(training.not_taken, ", "));
  }
  if (training.default_preprocessing) {
    warn(fmt::format("{} does not say how its images are prepared: using the default of {}, {}",
                     plan_.model.init, training.model->spec().name,
                     training.model->preprocessing().to_json().dump()));
  }
  for (const std::string& note : training.train.notes()) warn(note);
  std::cerr << fmt::format("data    {}, augmentation {}\n", training.train.spec.to_string(),
                           format_value(plan_.data.augmentation));
  if (plan_.data.sampling == Sampling::kPerDomain) {
    std::cerr << fmt::format("train   {} steps of {} images from each of {} domains",
                             trainer_.steps_total(), plan_.train.batch_size,
                             training.train.domains.size());
  } else {
    std::cerr << fmt::format("train   {} epochs of {} steps, {} images each", plan_.train.epochs,
                             trainer_.steps_per_epoch(), plan_.train.batch_size);
  }
  const bool as_float32 = opened_.device.is_cpu() && plan_.train.precision == Precision::kTf32;
  const Precision used = as_float32 ? Precision::kFloat32 : plan_.train.precision;
  std::cerr << fmt::format(", {}, {}\ndevice  {}, {}, {} loader threads\n", plan_.train.optimizer,
                           format_value(plan_.train.schedule), opened_.device.str(),
                           format_value(used), threads_);
  if (processes_) {
    std::cerr << fmt::format("share   {} processes, a part of every batch each\n",
                             processes_->size());
  }
  if (trainer_.steps_done() > 0) {
    std::cerr << fmt::format("resume  after step {} of {}\n", trainer_.steps_done(),
                             trainer_.steps_total());
  }
}

void TrainRun::print_score(const nlohmann::json& record) const {
  if (!record.contains("evaluation")) return;
  const auto& score = record["evaluation"];
  std::vector<std::vector<std::string>> rows = {{"evaluation", "images", "accuracy", "error"}};
  const auto add = [&](const std::string& name, std::int64_t images, double accuracy) {
    rows.push_back(
        {name, std::to_string(images), format_share(accuracy), format_share(1 - accuracy)});
  };
  const std::int64_t images = score.at("images");
  if (score.at("domains").size() > 1) {
    for (const auto& part : score.at("domains")) {
      const Evaluation::Part read{part.at("domain"), part.at("images"), part.at("correct")};
      add(read.domain, read.images, read.accuracy());
    }
    add("mean of the domains", images, score.at("mean_accuracy"));
  } else {
    add(score.at("data").get<std::string>(), images, score.at("accuracy"));
  }
  std::cout << format_table(rows) << '\n';
}

void TrainRun::print_weights(const nlohmann::json& record) const {
  std::error_code device;  // has no size
  const std::uintmax_t bytes = std::filesystem::file_size(out_, device);
  const std::int64_t steps = record.at("steps");
  std::cout << fmt::format(
      "weights   {} ({:.2f} MB, {}, {})\n", out_.string(),
      device ? 0 : static_cast<double>(bytes) / 1e6, format_value(plan_.output.type),
      record.contains("kept_step")
          ? fmt::format("after {} of {} steps",
                        with_commas(record["kept_step"].get<std::int64_t>()), with_commas(steps))
          : fmt::format("{} steps", with_commas(steps)));
}

}  // namespace

int run_training(const TrainFlags& flags) {
  catch_interrupts();
  if (flags.threads > 0) at::set_num_threads(static_cast<int>(flags.threads));
  at::globalContext().setBenchmarkCuDNN(true);
  return TrainRun(flags).run();
}

}  // namespace gala
