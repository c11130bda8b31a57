#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gala {

/// Everything `gala run` was asked for.
struct RunFlags {
  std::string plan, store, shard, root;
  std::vector<std::string> only;
  std::string device = "cpu";
  std::string layout = "auto";
  std::string precision;           ///< of all runs; empty: the plan's
  std::string command;             ///< as it was typed
  std::vector<std::string> words;  ///< the same, word by word
  std::int64_t jobs = 1;
  std::int64_t threads = 0;  ///< of each run; 0: the cores are shared out
  std::int64_t shards = 16;  ///< of an array
  bool deterministic = false, dry_run = false, quiet = false;
  bool apart = false;  ///< a file of its own in the store
  bool slurm = false;  ///< submit, and make nothing here
};

/// Makes the runs of a plan that the store lacks, or submits them, or shows how far an array is that was submitted.
/// Returns the exit code: 0, or 130 when the user stopped it.
int run_plan(const RunFlags& flags);

}  // namespace gala
