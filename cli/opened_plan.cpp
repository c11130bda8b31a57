#include "cli/opened_plan.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <chrono>

#include "cli/command_files.h"
#include "cli/model_flags.h"
#include "cli/plan_kind.h"
#include "gala/base/error.h"
#include "gala/train/shard.h"

namespace gala {
namespace {

/// What the plan names and reads, and what would be written over it.
void check_files(const TrainFlags& flags, const OpenedPlan& opened) {
  const std::string& out = opened.plan.output.weights;
  const std::string name = flags.out.empty() ? "output.weights" : "--out";
  CommandFiles files;
  files.reads("PLAN", flags.plan);
  files.reads("model.init", opened.plan.model.init);
  files.reads_data("data.train", opened.training.train.spec);
  if (opened.training.evaluation) {
    files.reads_data("data.evaluation", opened.training.evaluation->spec);
  }
  if (opened.leads()) {
    files.writes(name, out);
    files.writes(name + "'s checkpoint", out + ".checkpoint");
  }
  files.check();
}

/// `cuda` is the GPU of its own that each process on a host has.
at::Device own_device(const TrainFlags& flags, const std::optional<ProcessPlace>& place) {
  if (!place || flags.device != "cuda") return parse_device(flags.device);
  if (!place->local_rank) {
    fail<ConfigError>(
        "--device cuda: LOCAL_RANK is not set, which says the GPU of {} (or give cuda:N)",
        place->name());
  }
  return parse_device(fmt::format("cuda:{}", *place->local_rank));
}

void open_machine(const TrainFlags& flags, OpenedPlan& opened) {
  if (flags.threads < 0) fail<ConfigError>("--threads must not be negative, not {}", flags.threads);
  if (!(flags.wait >= 1 && flags.wait <= 1e6)) {
    fail<ConfigError>("--wait must be from 1 to 1000000 seconds, not {}", flags.wait);
  }
  opened.place = find_place();
  opened.device = own_device(flags, opened.place);
}

}  // namespace

OpenedPlan open_plan(const TrainFlags& flags) {
  refuse_other_plan(flags.plan, PlanKind::kTraining);
  OpenedPlan opened;
  Problems problems;
  std::vector<PlanSetting> settings;
  for (const std::string& text : flags.settings) {
    problems.attempt("--set", [&] { settings.push_back(PlanSetting::parse(text)); });
  }
  opened.plan = read_train_plan(flags.plan, problems, settings);
  TrainPlan& plan = opened.plan;
  if (!flags.out.empty()) plan.output.weights = flags.out;
  if (!flags.data_path.empty()) {
    problems.attempt("--data-path", [&] { plan.set_data_path(flags.data_path); });
  }
  if (plan.output.weights.empty()) problems.add("output.weights is missing (or give --out)");
  problems.attempt("machine", [&] { open_machine(flags, opened); });
  opened.training = open_training(plan, problems);
  if (opened.place) {
    problems.attempt("train.batch_size",
                     [&] { check_shares(plan, opened.training, opened.place->size); });
  }
  if (!plan.output.weights.empty()) {
    problems.attempt("output", [&] { check_files(flags, opened); });
  }
  problems.throw_if_any(flags.plan);
  if (opened.device.is_cuda()) {
    allow_tf32(opened.plan.train.precision);
    set_deterministic(false);  // the quickest convolutions: shapes repeat
  }
  opened.training.model->to(opened.device);
  if (opened.place) {
    const auto patience = std::chrono::milliseconds(static_cast<std::int64_t>(flags.wait * 1000));
    opened.processes = open_process_group(*opened.place, opened.device, patience);
  }
  return opened;
}

}  // namespace gala
