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
#include "cli/model_flags.h"
#include "cli/scores.h"
#include "cli/text.h"
#include "gala/adapt/state_file.h"
#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/interrupt.h"
#include "gala/base/stopwatch.h"
#include "gala/train/result.h"
#include "gala/train/setup.h"
#include "gala/train/trainer.h"

namespace gala {
namespace {

/// Steps between two looks at the loss, each of which waits for the device.
constexpr std::int64_t kLookEvery = 50;

/// A plan with the flags worked in and everything it names opened.
struct OpenedPlan {
  TrainPlan plan;
  Training training;
  at::Device device = at::kCPU;
};

OpenedPlan open_plan(const TrainFlags& flags) {
  OpenedPlan opened;
  Problems problems;
  opened.plan = read_train_plan(flags.plan, problems);
  TrainPlan& plan = opened.plan;
  if (!flags.out.empty()) plan.output.weights = flags.out;
  if (!flags.data_path.empty()) {
    problems.attempt("--data-path", [&] { plan.set_data_path(flags.data_path); });
  }
  if (plan.output.weights.empty()) {
    problems.add("output.weights is missing (or give --out)");
  } else {
    problems.attempt("output.weights", [&] {
      require_writable(plan.output.weights, flags.out.empty() ? "output.weights" : "--out");
    });
  }
  problems.attempt("machine", [&] {
    opened.device = parse_device(flags.device);
    if (flags.threads < 0)
      fail<ConfigError>("--threads must not be negative, not {}", flags.threads);
  });
  opened.training = open_training(plan, problems);
  problems.throw_if_any(flags.plan);
  opened.training.model->to(opened.device);
  return opened;
}

/// One call of `gala train`, from opened files to the last line.
class TrainRun {
 public:
  explicit TrainRun(const TrainFlags& flags);
  int run();

 private:
  bool resume();
  void save_checkpoint() const { write_state(checkpoint_, trainer_.save()); }
  void look();
  void end_epoch();
  int stop();
  std::optional<Evaluation> evaluate_now();
  void print_heading() const;
  void print_result(const nlohmann::json& record) const;

  const TrainFlags& flags_;
  OpenedPlan opened_;
  const TrainPlan& plan_;
  std::filesystem::path out_, checkpoint_;
  int threads_;
  std::optional<Stream> evaluation_;
  Trainer trainer_;
  std::optional<Progress> progress_;
  Stopwatch epoch_watch_;
  double epoch_loss_ = 0, epoch_accuracy_ = 0;  ///< sums over the steps looked at
  std::int64_t epoch_steps_ = 0;
};

int loader_threads(const TrainFlags& flags, const at::Device& device) {
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::int64_t most = flags.threads > 0 ? std::min(flags.threads, cores) : cores;
  // A CPU needs its cores for the network; a GPU is fed by as many as are of use.
  return static_cast<int>(std::min<std::int64_t>(most, device.is_cuda() ? 12 : 2));
}

TrainRun::TrainRun(const TrainFlags& flags)
    : flags_(flags),
      opened_(open_plan(flags)),
      plan_(opened_.plan),
      out_(plan_.output.weights),
      checkpoint_(plan_.output.weights + ".checkpoint"),
      threads_(loader_threads(flags, opened_.device)),
      trainer_(*opened_.training.model,
               training_stream(opened_.training.train, plan_.train.epochs,
                               static_cast<std::uint64_t>(plan_.train.seed)),
               make_transform(plan_.data.augmentation, opened_.training.model->preprocessing(),
                              static_cast<std::uint64_t>(plan_.train.seed)),
               plan_, threads_) {
  if (opened_.training.evaluation) evaluation_ = evaluation_stream(*opened_.training.evaluation);
}

/// False when there is nothing left to do.
bool TrainRun::resume() {
  const bool exists = std::filesystem::exists(checkpoint_);
  if (exists && !flags_.resume) {
    fail<ConfigError>("{} holds a run that was stopped: give --resume to go on, or remove the file",
                      checkpoint_.string());
  }
  if (exists) {
    const State state = read_state(checkpoint_);
    try {
      trainer_.load(state);
    } catch (const ConfigError& problem) {
      fail<ConfigError>("--resume {}: {}", checkpoint_.string(), problem.what());
    }
  } else if (flags_.resume) {
    if (const auto record = find_record(out_, trainer_.settings())) {
      if (!flags_.quiet) std::cerr << fmt::format("{} is finished already\n", out_.string());
      print_result(*record);
      return false;
    }
    if (!flags_.quiet) std::cerr << "no checkpoint yet: starting from the beginning\n";
  }
  return true;
}

void TrainRun::look() {
  const Meter meter = trainer_.read_meter();
  const auto steps = static_cast<double>(meter.steps);
  epoch_loss_ += meter.loss * steps;
  epoch_accuracy_ += meter.accuracy * steps;
  epoch_steps_ += meter.steps;
  progress_->advance(trainer_.steps_done(),
                     fmt::format("loss {:.3f}  accuracy {}  rate {:.4f}", meter.loss,
                                 format_share(meter.accuracy), trainer_.learning_rate()));
}

std::optional<Evaluation> TrainRun::evaluate_now() {
  if (!evaluation_) return std::nullopt;
  return evaluate(*opened_.training.model, *evaluation_, threads_);
}

void TrainRun::end_epoch() {
  const std::int64_t epoch = trainer_.epochs_done();
  const std::int64_t every = plan_.train.evaluate_every;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, epoch_steps_));
  std::string line = fmt::format("epoch {}/{}  loss {:.4f}  accuracy {}  rate {:.5f}", epoch,
                                 plan_.train.epochs, epoch_loss_ / steps,
                                 format_share(epoch_accuracy_ / steps), trainer_.learning_rate());
  if (every > 0 && epoch % every == 0 && !trainer_.finished()) {
    line += fmt::format("  evaluation {}", format_share(evaluate_now()->accuracy()));
  }
  line += "  " + format_duration(epoch_watch_.lap() / 1000);
  progress_->clear();
  if (!flags_.quiet) std::cerr << line << '\n';
  epoch_loss_ = epoch_accuracy_ = 0;
  epoch_steps_ = 0;
}

int TrainRun::stop() {
  progress_->clear();
  std::cerr << fmt::format(
      "stopped after step {} of {}\nto go on: the same command with --resume\n",
      trainer_.steps_done(), trainer_.steps_total());
  return kInterruptedExit;
}

int TrainRun::run() {
  if (!resume()) return 0;
  if (!flags_.quiet) print_heading();
  progress_.emplace("step", trainer_.steps_total(), trainer_.steps_done(), flags_.quiet);
  const std::int64_t every = plan_.train.checkpoint_every;
  try {
    while (trainer_.step()) {
      const std::int64_t step = trainer_.steps_done();
      const bool stopping = interrupted(), epoch_ends = trainer_.at_epoch_end();
      const bool saving = stopping || epoch_ends || (every > 0 && step % every == 0);
      if (saving || step % kLookEvery == 0) look();  // a broken state is not saved: it throws
      if (saving) save_checkpoint();
      if (stopping) return stop();
      if (epoch_ends) end_epoch();
    }
    progress_->clear();
    round_weights(*opened_.training.model, plan_.output.type);
    const TrainingRecord record{plan_, trainer_.settings(), trainer_.steps_total(), evaluate_now()};
    save_trained(*opened_.training.model, record, out_);
    std::filesystem::remove(checkpoint_);
    print_result(record.to_json());
  } catch (const Interrupted&) {
    return stop();
  }
  return 0;
}

void TrainRun::print_heading() const {
  std::int64_t count = 0;
  for (const Parameter& p : opened_.training.model->parameters()) count += p.value.numel();
  std::cerr << fmt::format(
      "model   {} ({} parameters)\ndata    {}, augmentation {}\ntrain   {} epochs of {} steps, {} "
      "images each, {}, {}\ndevice  {}, {} loader threads\n",
      opened_.training.model->spec().to_string(), with_commas(count),
      opened_.training.train.spec.to_string(), format_value(plan_.data.augmentation),
      plan_.train.epochs, trainer_.steps_per_epoch(), plan_.train.batch_size, plan_.train.optimizer,
      format_value(plan_.train.schedule), opened_.device.str(), threads_);
  if (trainer_.steps_done() > 0) {
    std::cerr << fmt::format("resume  after step {} of {}\n", trainer_.steps_done(),
                             trainer_.steps_total());
  }
}

void TrainRun::print_result(const nlohmann::json& record) const {
  if (record.contains("evaluation")) {
    const auto& score = record["evaluation"];
    const double accuracy = score.at("accuracy");
    std::cout << format_table({{"evaluation", "images", "accuracy", "error"},
                               {score.at("data").get<std::string>(),
                                std::to_string(score.at("images").get<std::int64_t>()),
                                format_share(accuracy), format_share(1 - accuracy)}})
              << '\n';
  }
  std::cout << fmt::format("weights   {} ({:.2f} MB, {}, {} steps)\n", out_.string(),
                           static_cast<double>(std::filesystem::file_size(out_)) / 1e6,
                           format_value(plan_.output.type),
                           with_commas(record.at("steps").get<std::int64_t>()));
}

}  // namespace

int run_training(const TrainFlags& flags) {
  catch_interrupts();
  if (flags.threads > 0) at::set_num_threads(static_cast<int>(flags.threads));
  // Half of a GPU's speed; the noise of a training step is far above TF32's rounding.
  at::globalContext().setAllowTF32CuBLAS(true);
  at::globalContext().setAllowTF32CuDNN(true);
  at::globalContext().setBenchmarkCuDNN(true);
  return TrainRun(flags).run();
}

}  // namespace gala
