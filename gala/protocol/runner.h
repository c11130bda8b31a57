#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gala/protocol/perform.h"
#include "gala/protocol/store.h"

namespace gala {

/// One part of a plan that is spread over several machines; parts are numbered from 1.
struct Shard {
  std::int64_t number = 1;
  std::int64_t count = 1;

  /// "2/8". Throws ConfigError.
  static Shard parse(const std::string& text);
  /// The part of `count` that a run is in: by its key, so that it is the same whatever else the plan holds.
  static std::int64_t of(const std::string& key, std::int64_t count);
  bool has(const std::string& key) const { return of(key, count) == number; }
};

/// The runs of the shard that the store lacks, in the plan's order.
std::vector<const ReadyRun*> runs_to_do(const std::vector<ReadyRun>& runs, const Store& store,
                                        const Shard& shard);

/// Adds a problem for every weight file these runs need and lack, each once.
void check_weights(const std::vector<const ReadyRun*>& runs, Problems& problems);

/// Gives the runs that the store has the places they have in this plan. Returns how many were new.
std::int64_t add_places(const std::vector<ReadyRun>& runs, Store& store);

/// How far the work has come.
struct RunnerStatus {
  std::int64_t batches = 0;  ///< answered, of all runs; those of runs that others made count too
  std::int64_t runs = 0;     ///< done, or failed
  /// The runs that ended since the last time, each with its accuracy or why it failed.
  std::vector<std::string> ended;
};

struct RunnerOutcome {
  std::int64_t added = 0;      ///< records written
  std::int64_t by_others = 0;  ///< runs that another program had recorded in the meantime
  bool interrupted = false;
};

/// Makes the runs, `machine.jobs` at a time, and records each as soon as it ends. `watch` is called
/// now and then from the calling thread, and once after the last run. After a signal, runs stop at
/// their next batch and leave nothing. When a run fails the others are made all the same, until three
/// have failed; then those at work end. The first error is thrown at the end, with the run's name.
RunnerOutcome run_all(const std::vector<const ReadyRun*>& runs, Store& store,
                      const Machine& machine,
                      const std::function<void(const RunnerStatus&)>& watch);

}  // namespace gala
