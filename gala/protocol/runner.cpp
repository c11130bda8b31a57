#include "gala/protocol/runner.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "gala/base/file.h"
#include "gala/base/interrupt.h"
#include "gala/base/words.h"
#include "gala/protocol/claims.h"

namespace gala {
namespace {

/// Takes runs one after another until none is left, on each of its threads. Those that another program
/// is at work on come last.
class Workers {
 public:
  Workers(const std::vector<const ReadyRun*>& runs, Store& store, const Machine& machine)
      : runs_(runs), store_(store), machine_(machine), claims_(store.folder()) {}

  RunnerOutcome run(const std::function<void(const RunnerStatus&)>& watch);

 private:
  void work();
  void make(const ReadyRun& run);
  const ReadyRun* take_next();
  void wait_for_all(const std::function<void(const RunnerStatus&)>& watch);
  void fail_with(const std::exception& error, const std::string& name);

  const std::vector<const ReadyRun*>& runs_;
  Store& store_;
  const Machine& machine_;
  const Claims claims_;
  SourceCache cache_;
  std::atomic<std::int64_t> batches_ = 0;
  std::mutex mutex_;  ///< of everything below
  std::condition_variable ended_;
  std::size_t next_ = 0;
  std::deque<const ReadyRun*> claimed_;  ///< by others when their turn came
  int working_ = 0;
  bool given_up_ = false;  ///< nobody waits for the rest
  RunnerStatus status_;
  RunnerOutcome outcome_;
  std::exception_ptr error_;  ///< of the first run that failed
  std::string failed_;        ///< its name
  int failures_ = 0;
};

const ReadyRun* Workers::take_next() {
  constexpr auto kPause = std::chrono::milliseconds(200);
  while (true) {
    const ReadyRun* run = nullptr;
    bool again = false;
    {
      const std::lock_guard guard(mutex_);
      constexpr int kMostFailures = 3;
      if (failures_ >= kMostFailures || given_up_ || interrupted()) return nullptr;
      if (next_ < runs_.size()) {
        run = runs_[next_++];
      } else if (!claimed_.empty()) {
        run = claimed_.front();
        claimed_.pop_front();
        again = true;
      } else {
        return nullptr;
      }
    }
    if (claims_.take(run->key)) return run;
    if (again) std::this_thread::sleep_for(kPause);
    const std::lock_guard guard(mutex_);
    claimed_.push_back(run);
  }
}

std::string describe(const Performed& performed) {
  std::string text = fmt::format("{:.2f} %", 100 * performed.record.accuracy());
  if (!performed.capture_problem.empty()) {
    text += "; steps were not captured as a graph, which is slower: " +
            first_line(performed.capture_problem);
  }
  return text;
}

void Workers::make(const ReadyRun& run) {
  // Another program may be at work on the same plan.
  store_.refresh();
  bool added = false;
  std::string result = "made elsewhere";
  if (!store_.contains(run.key)) {
    std::int64_t answered = 0;
    Performed performed = perform(run, machine_, cache_, [&] {
      ++answered;
      ++batches_;
    });
    batches_ += run.batches - answered;
    if (!performed.trace.empty()) {
      performed.record.trace = fmt::format("traces/{}.jsonl.gz", run.key);
      const auto file = store_.folder() / performed.record.trace;
      std::filesystem::create_directories(file.parent_path());
      write_atomically(file, [&](std::ostream& out) { out << performed.trace; });
    }
    added = store_.append(performed.record);
    if (added) result = describe(performed);
  } else {
    batches_ += run.batches;
  }
  for (const Labels& labels : run.places) store_.add_place(run.key, labels);
  if (!added) store_.add_place(run.key, run.labels);
  const std::lock_guard guard(mutex_);
  ++status_.runs;
  ++(added ? outcome_.added : outcome_.by_others);
  status_.ended.push_back(fmt::format("{}: {}", run.name, result));
}

/// While the error is being handled.
void Workers::fail_with(const std::exception& error, const std::string& name) {
  const std::lock_guard guard(mutex_);
  ++status_.runs;
  status_.ended.push_back(fmt::format("{}: failed: {}", name, first_line(in_words(error))));
  if (++failures_ > 1) return;
  error_ = std::current_exception();
  failed_ = name;
}

void Workers::work() {
  // OpenMP keeps this number for each thread.
  at::set_num_threads(machine_.threads);
  while (const ReadyRun* run = take_next()) {
    try {
      make(*run);
    } catch (const Interrupted&) {
      break;
    } catch (const std::exception& error) {
      fail_with(error, run->name);
    }
    claims_.give_back(run->key);
  }
  const std::lock_guard guard(mutex_);
  --working_;
  ended_.notify_all();
}

void Workers::wait_for_all(const std::function<void(const RunnerStatus&)>& watch) {
  std::unique_lock lock(mutex_);
  for (bool over = false; !over;) {
    over = ended_.wait_for(lock, std::chrono::milliseconds(100), [this] { return working_ == 0; });
    status_.batches = batches_;
    const RunnerStatus status = status_;
    status_.ended.clear();
    lock.unlock();
    watch(status);
    lock.lock();
  }
}

RunnerOutcome Workers::run(const std::function<void(const RunnerStatus&)>& watch) {
  {
    std::vector<std::jthread> threads;
    working_ = machine_.jobs;
    try {
      for (int i = 0; i < machine_.jobs; ++i) threads.emplace_back([this] { work(); });
      wait_for_all(watch);
    } catch (...) {
      // The system grants no further thread, or whoever watches has enough: those at work end what they are at.
      const std::lock_guard lock(mutex_);
      given_up_ = true;
      throw;
    }
  }
  outcome_.interrupted = interrupted();
  if (!error_) return outcome_;
  const auto message = [&](const std::exception& error) {
    const std::string more = failures_ == 1 ? "" : fmt::format(" ({} runs failed)", failures_);
    return fmt::format("{}: {}{}; {} of {} runs were recorded, and the same command goes on",
                       failed_, first_line(in_words(error)), more, outcome_.added, runs_.size());
  };
  try {
    std::rethrow_exception(error_);
  } catch (const ConfigError& error) {
    throw ConfigError(message(error));
  } catch (const FormatError& error) {
    throw ConfigError(message(error));
  } catch (const std::exception& error) {
    throw Error(message(error));
  }
}

}  // namespace

Shard Shard::parse(const std::string& text) {
  Shard shard;
  const std::size_t slash = text.find('/');
  const std::string_view all = text;
  if (slash == std::string::npos || !parse_value(all.substr(0, slash), shard.number) ||
      !parse_value(all.substr(slash + 1), shard.count) || shard.count < 1 || shard.number < 1 ||
      shard.number > shard.count) {
    fail<ConfigError>("{}: expected I/N with I from 1 to N, such as 2/8", text);
  }
  return shard;
}

std::int64_t Shard::of(const std::string& key, std::int64_t count) {
  return static_cast<std::int64_t>(std::stoull(key.substr(0, 8), nullptr, 16)) % count + 1;
}

std::vector<const ReadyRun*> runs_to_do(const std::vector<ReadyRun>& runs, const Store& store,
                                        const Shard& shard) {
  std::vector<const ReadyRun*> to_do;
  for (const ReadyRun& run : runs) {
    if (shard.has(run.key) && !store.contains(run.key)) to_do.push_back(&run);
  }
  return to_do;
}

void check_weights(const std::vector<const ReadyRun*>& runs, Problems& problems) {
  std::set<std::string> said;
  for (const ReadyRun* run : runs) {
    const std::string& missing = run->source.missing;
    if (!missing.empty() && said.insert(missing).second) problems.add(missing);
  }
}

std::int64_t add_places(const std::vector<ReadyRun>& runs, Store& store) {
  std::int64_t added = 0;
  for (const ReadyRun& run : runs) {
    if (!store.contains(run.key)) continue;
    added += store.add_place(run.key, run.labels);
    for (const Labels& labels : run.places) added += store.add_place(run.key, labels);
  }
  return added;
}

RunnerOutcome run_all(const std::vector<const ReadyRun*>& runs, Store& store,
                      const Machine& machine,
                      const std::function<void(const RunnerStatus&)>& watch) {
  return Workers(runs, store, machine).run(watch);
}

}  // namespace gala
