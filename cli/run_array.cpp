#include "cli/run_array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <thread>

#include "cli/command.h"
#include "cli/run_plan.h"
#include "cli/slurm.h"
#include "cli/text.h"
#include "gala/base/interrupt.h"
#include "gala/protocol/runner.h"

namespace gala {
namespace {

/// The words of this call that its tasks repeat: the program where it lies, without what concerns the array.
std::vector<std::string> words_of_task(const RunFlags& flags) {
  std::vector<std::string> words = split_at_slurm(flags.words).own;
  words.pop_back();
  words.front() = std::filesystem::read_symlink("/proc/self/exe").string();
  std::erase_if(words, [](const std::string& word) { return word.starts_with("--shards="); });
  for (auto word = std::find(words.begin(), words.end(), "--shards"); word != words.end();
       word = std::find(words.begin(), words.end(), "--shards")) {
    words.erase(word, std::min(word + 2, words.end()));
  }
  return words;
}

SlurmArray array_of(const RunFlags& flags, const std::string& plan,
                    const std::vector<const ReadyRun*>& to_do) {
  std::set<std::int64_t> numbers;
  for (const ReadyRun* run : to_do) numbers.insert(Shard::of(run->key, flags.shards));
  return {.plan = plan,
          .command = words_of_task(flags),
          .shards = flags.shards,
          .numbers = {numbers.begin(), numbers.end()},
          .options = split_at_slurm(flags.words).for_sbatch};
}

}  // namespace

std::string array_at_work(const std::string& store, const std::string& plan, bool quiet) {
  const std::string array = last_array(store, plan);
  if (array.empty()) return "";
  const std::optional<SlurmTasks> tasks = tasks_of(array);
  if (!tasks) {
    warn(fmt::format("array {} was submitted for this plan, and squeue, which would know whether "
                     "it is at work still, "
                     "does not answer here",
                     array),
         quiet);
    return "";
  }
  return tasks->count() > 0 ? array : "";
}

void submit_runs(const RunFlags& flags, const std::string& plan,
                 const std::vector<const ReadyRun*>& to_do) {
  const SlurmArray array = array_of(flags, plan, to_do);
  const std::string number = submit(array, flags.store);
  std::cout << fmt::format(
      "array {}: {} runs in {} tasks, whose output goes to {}/slurm/{}_*.log\n", number,
      to_do.size(), array.numbers.size(), flags.store, number);
}

void print_array(const RunFlags& flags, const std::string& plan,
                 const std::vector<const ReadyRun*>& to_do) {
  const SlurmArray array = array_of(flags, plan, to_do);
  std::cout << fmt::format("{} runs in {} tasks: {}\n\n{}", to_do.size(), array.numbers.size(),
                           fmt::join(array.numbers, ","), slurm_script(array));
}

int watch_array(const std::string& array, const std::vector<const ReadyRun*>& to_do, Store& store,
                bool quiet) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kStep = std::chrono::milliseconds(500);
  constexpr auto kBetweenQuestions =
      std::chrono::seconds(10);  // the controller has others to serve
  const auto total = std::ssize(to_do);
  Progress progress("run", total, 0, quiet);
  std::optional<SlurmTasks> tasks;
  for (auto ask_at = Clock::now(); !interrupted(); std::this_thread::sleep_for(kStep)) {
    const bool ask = Clock::now() >= ask_at;
    if (ask) {
      // A controller that restarts, or is busy, says nothing for a while.
      if (const auto answer = tasks_of(array)) tasks = answer;
      ask_at = Clock::now() + kBetweenQuestions;
    }
    store.refresh();  // after the question: a task records before it ends
    const auto made = std::count_if(to_do.begin(), to_do.end(),
                                    [&](const ReadyRun* run) { return store.contains(run->key); });
    progress.advance(made, tasks ? fmt::format("array {}: {} tasks at work, {} waiting", array,
                                               tasks->running, tasks->waiting)
                                 : "array " + array);
    if (made == total) return 0;
    if (ask && tasks && tasks->count() == 0) {
      progress.clear();
      std::cerr << fmt::format(
          "array {} is over, and {} of {} runs are missing: its tasks' output in {}/slurm says "
          "why. The same "
          "command makes them here, with --slurm on the cluster\n",
          array, total - made, total, store.folder().string());
      return 1;
    }
  }
  progress.clear();
  std::cerr << fmt::format("array {} goes on without being looked at; scancel {} stops it\n", array,
                           array);
  return kInterruptedExit;
}

}  // namespace gala
