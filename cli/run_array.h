#pragma once
#include <string>
#include <vector>

#include "gala/protocol/resolve.h"
#include "gala/protocol/store.h"

namespace gala {

struct RunFlags;

/// The number of the array that is at work on a plan, or that waits to be; empty where there is none.
std::string array_at_work(const std::string& store, const std::string& plan, bool quiet);

/// Submits the shards that have something to do, and says so.
void submit_runs(const RunFlags& flags, const std::string& plan,
                 const std::vector<const ReadyRun*>& to_do);

/// What would be submitted, to standard output.
void print_array(const RunFlags& flags, const std::string& plan,
                 const std::vector<const ReadyRun*>& to_do);

/// Shows how many of the runs an array has made, until it has made all of them or is over. Returns the exit code: 0,
/// 1 when runs are missing after its end, or 130 when the user stopped looking, which stops nothing else.
int watch_array(const std::string& array, const std::vector<const ReadyRun*>& to_do, Store& store,
                bool quiet);

}  // namespace gala
