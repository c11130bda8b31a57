#include "cli/run_plan.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gala_commit.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <set>
#include <thread>

#include "cli/command.h"
#include "cli/command_files.h"
#include "cli/model_flags.h"
#include "cli/plan_kind.h"
#include "cli/run_array.h"
#include "cli/run_report.h"
#include "cli/text.h"
#include "gala/base/interrupt.h"
#include "gala/protocol/other_weights.h"
#include "gala/protocol/runner.h"

namespace gala {
namespace {

/// A plan with everything it names opened, beside the store.
struct OpenedPlan {
  ExperimentPlan plan;
  std::vector<ReadyRun> runs;
  std::optional<Store> store;  ///< nothing when a dry run finds none
  Shard shard;
  std::vector<const ReadyRun*> to_do;
  Machine machine;
  std::string array;  ///< of Slurm, that is at work on this plan; else empty
};

Machine decide_machine(const RunFlags& flags) {
  Machine machine;
  machine.device = parse_device(flags.device);
  // Not the number of cores: OMP_NUM_THREADS may say otherwise.
  const int threads = std::max(1, at::get_num_threads());
  machine.jobs = static_cast<int>(flags.jobs);
  machine.threads =
      flags.threads > 0 ? static_cast<int>(flags.threads) : std::max(1, threads / machine.jobs);
  // A CPU needs its cores for the network; a GPU is fed by as many as are of use.
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  machine.loader_threads = machine.device.is_cuda() ? std::clamp(cores / machine.jobs, 1, 8) : 1;
  machine.layout = parse_flag<Layout>("--layout", flags.layout);
  machine.deterministic = flags.deterministic;
  machine.version = GALA_VERSION;
  machine.commit = GALA_COMMIT;
  machine.command = flags.command;
  return machine;
}

std::vector<std::pair<std::string, std::string>> parse_conditions(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> conditions;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      fail<ConfigError>("{}: expected NAME=VALUE, such as dataset=PACS", text);
    }
    conditions.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return conditions;
}

/// TF32 and the choice of convolutions are switches of the whole program.
void set_arithmetic(const std::vector<const ReadyRun*>& runs, const Machine& machine,
                    Problems& problems) {
  if (runs.empty()) return;
  Precision precision{};
  parse_value(runs.front()->spec.precision, precision);
  for (const ReadyRun* run : runs) {
    if (run->spec.precision == runs.front()->spec.precision) continue;
    return problems.add(
        "runs of different precision cannot go side by side: use --precision, or --only "
        "precision=...");
  }
  if (precision == Precision::kTf32 && !machine.device.is_cuda()) {
    problems.add(fmt::format("precision {} needs --device cuda", format_value(precision)));
  }
  if (machine.device.is_cuda()) allow_tf32(precision);
  set_deterministic(machine.deterministic);
}

/// Overrides what the plan says: which arithmetic is of use depends on the machine.
void take_precision(const RunFlags& flags, ExperimentPlan& plan) {
  if (flags.precision.empty()) return;
  const auto precision = parse_flag<Precision>("--precision", flags.precision);
  for (PlannedRun& run : plan.runs) run.request.precision = precision;
}

/// Before the store is opened: a plan or weights must not lie where it writes.
void check_files(const RunFlags& flags, const OpenedPlan& opened) {
  CommandFiles files;
  files.reads("PLAN", flags.plan);
  std::set<std::filesystem::path> weights;
  for (const ReadyRun& run : opened.runs) weights.insert(run.source.weights);
  for (const std::filesystem::path& path : weights) files.reads("weights", path);
  files.writes("--store", std::filesystem::path(flags.store) / "records.jsonl");
  files.check_clashes();
}

void open_store(const RunFlags& flags, OpenedPlan& opened, Problems& problems) {
  problems.attempt("--store", [&] {
    check_files(flags, opened);
    std::error_code ignored;
    if (std::filesystem::exists(flags.store, ignored) &&
        !std::filesystem::is_directory(flags.store, ignored)) {
      fail<ConfigError>("{}: is a file, not the folder of a store", flags.store);
    }
    const bool there =
        std::filesystem::exists(std::filesystem::path(flags.store) / "records.jsonl", ignored);
    if (!flags.dry_run && problems.empty()) {
      opened.store.emplace(flags.store,
                           flags.apart ? Store::Access::kWriteApart : Store::to_write(flags.store));
    } else if (there) {
      opened.store.emplace(flags.store, Store::Access::kRead);
    }
  });
}

void find_work(OpenedPlan& opened) {
  if (opened.store) {
    opened.to_do = runs_to_do(opened.runs, *opened.store, opened.shard);
  } else {
    for (const ReadyRun& run : opened.runs) {
      if (opened.shard.has(run.key)) opened.to_do.push_back(&run);
    }
  }
}

/// Everything that can be wrong is found here, before the first run. The store is opened late, and
/// only for reading when something is wrong: a plan with mistakes makes no folder.
void open_plan(const RunFlags& flags, OpenedPlan& opened, Problems& problems) {
  refuse_other_plan(flags.plan, PlanKind::kExperiment);
  opened.plan = read_plan(flags.plan, problems);
  problems.throw_if_any(flags.plan);
  // A task of an array, and whoever names a shard, makes runs; so does everybody where no array is at work.
  if (flags.shard.empty() && !flags.dry_run) {
    opened.array = array_at_work(flags.store, opened.plan.name, flags.quiet);
  }
  const bool here = !flags.slurm && opened.array.empty();
  if (here) problems.attempt("machine", [&] { opened.machine = decide_machine(flags); });
  problems.attempt("--precision", [&] { take_precision(flags, opened.plan); });
  problems.attempt("--only", [&] { keep_only(opened.plan, parse_conditions(flags.only)); });
  if (!flags.shard.empty()) {
    problems.attempt("--shard", [&] { opened.shard = Shard::parse(flags.shard); });
  }
  if (opened.plan.runs.empty()) return;
  opened.runs = resolve(opened.plan, flags.root, problems);
  open_store(flags, opened, problems);
  find_work(opened);
  if (!opened.array.empty()) return;
  check_weights(opened.to_do, problems);
  if (here) set_arithmetic(opened.to_do, opened.machine, problems);
}

/// Runs that an earlier plan made without the trace that this one asks for.
std::int64_t count_traceless(const std::vector<ReadyRun>& runs, const Store& store) {
  std::set<std::string> wanted;
  for (const ReadyRun& run : runs) {
    if (run.trace) wanted.insert(run.key);
  }
  return std::count_if(store.records().begin(), store.records().end(), [&](const Record& record) {
    return record.trace.empty() && wanted.contains(record.key);
  });
}

/// What may be wrong with the runs, each thing once.
void warn_of_runs(const RunFlags& flags, const OpenedPlan& opened) {
  if (const std::int64_t count = opened.store ? count_traceless(opened.runs, *opened.store) : 0) {
    warn(fmt::format("{} of the recorded runs have no trace, though this plan asks for one: they "
                     "were made for another",
                     count),
         flags.quiet);
  }
  if (opened.store) {
    for (const std::string& sentence : other_weights(opened.runs, opened.store->records())) {
      warn(sentence, flags.quiet);
    }
  }
  std::set<std::string> warnings;
  for (const ReadyRun* run : opened.to_do) {
    warnings.insert(run->warnings.begin(), run->warnings.end());
  }
  for (const std::string& warning : warnings) warn(warning, flags.quiet);
  const bool random =
      std::any_of(opened.to_do.begin(), opened.to_do.end(),
                  [](const ReadyRun* run) { return run->source.identity.contains("random"); });
  if (random) {
    warn("neither weights nor train: networks start from a random initialisation and know nothing",
         flags.quiet);
  }
}

/// Says what was found in the store since `told` such things.
void tell_repairs(const RunFlags& flags, const Store& store, std::size_t& told) {
  for (; told < store.repairs().size(); ++told) warn(store.repairs()[told], flags.quiet);
}

/// Before the first run, wherever it is made.
void begin(const RunFlags& flags, OpenedPlan& opened, std::size_t& told) {
  tell_repairs(flags, *opened.store, told);
  warn_of_runs(flags, opened);
  const std::int64_t places = add_places(opened.runs, *opened.store);
  if (!flags.quiet) print_run_heading(opened.plan, opened.runs, opened.to_do, places);
}

/// Hands the runs to Slurm, or shows how far it is with them.
int use_array(const RunFlags& flags, OpenedPlan& opened) {
  std::size_t told = 0;
  begin(flags, opened, told);
  if (flags.slurm && !opened.to_do.empty()) {
    submit_runs(flags, opened.plan.name, opened.to_do);
    return 0;
  }
  const int code =
      flags.slurm ? 0 : watch_array(opened.array, opened.to_do, *opened.store, flags.quiet);
  print_results(opened.plan, opened.runs, opened.store->records());
  return code;
}

int make_runs(const RunFlags& flags, OpenedPlan& opened) {
  Store& store = *opened.store;
  std::size_t told = 0;
  begin(flags, opened, told);
  std::int64_t batches = 0;
  for (const ReadyRun* run : opened.to_do) batches += run->batches;
  const auto total = static_cast<std::int64_t>(opened.to_do.size());
  Progress progress("batch", batches, 0, flags.quiet);
  const RunnerOutcome outcome =
      run_all(opened.to_do, store, opened.machine, [&](const RunnerStatus& status) {
        std::int64_t number = status.runs - static_cast<std::int64_t>(status.ended.size());
        for (const std::string& run : status.ended) {
          progress.clear();
          if (!flags.quiet) std::cerr << fmt::format("run {}/{}  {}\n", ++number, total, run);
        }
        progress.advance(status.batches, fmt::format("run {}/{}", status.runs, total));
      });
  progress.clear();
  tell_repairs(flags, store, told);
  if (outcome.interrupted) {
    std::cerr << fmt::format(
        "stopped: {} of {} runs were recorded; the same command makes the others\n", outcome.added,
        total);
    return kInterruptedExit;
  }
  if (outcome.by_others > 0 && !flags.quiet) {
    std::cerr << fmt::format("{} runs were recorded by another program meanwhile\n",
                             outcome.by_others);
  }
  store.refresh();
  print_results(opened.plan, opened.runs, store.records());
  return 0;
}

}  // namespace

int run_plan(const RunFlags& flags) {
  catch_interrupts();
  OpenedPlan opened;
  Problems problems;
  open_plan(flags, opened, problems);
  if (opened.plan.runs.empty() && problems.empty()) {
    std::cout << fmt::format("{}: {}\nThis plan has no runs.\n", opened.plan.name,
                             opened.plan.title);
    return 0;
  }
  if (flags.slurm && !opened.array.empty()) {
    fail<ConfigError>("array {} is at work on this plan already (scancel {} stops it)",
                      opened.array, opened.array);
  }
  if (flags.slurm && flags.dry_run) {
    problems.throw_if_any(flags.plan);
    print_array(flags, opened.plan.name, opened.to_do);
    return 0;
  }
  if (flags.dry_run) {
    std::size_t told = 0;
    if (opened.store) tell_repairs(flags, *opened.store, told);
    warn_of_runs(flags, opened);
    print_dry_run(opened.plan, opened.runs, opened.to_do, opened.store ? &*opened.store : nullptr,
                  opened.machine);
  }
  problems.throw_if_any(flags.plan);
  if (flags.dry_run) return 0;
  return flags.slurm || !opened.array.empty() ? use_array(flags, opened) : make_runs(flags, opened);
}

}  // namespace gala
