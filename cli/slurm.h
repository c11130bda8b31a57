#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gala {

/// A command line: what follows --slurm is meant for sbatch, whatever it looks like.
struct SlurmWords {
  std::vector<std::string> own;  ///< --slurm is the last of them
  std::vector<std::string> for_sbatch;
};
SlurmWords split_at_slurm(const std::vector<std::string>& words);

/// An array of tasks, each of which makes the runs of one shard of a plan.
struct SlurmArray {
  std::string plan;                   ///< its name
  std::vector<std::string> command;   ///< the program and its words, without --shard
  std::int64_t shards = 1;            ///< of the plan
  std::vector<std::int64_t> numbers;  ///< the shards with something to do
  std::vector<std::string> options;   ///< for sbatch; they win over ours
};

/// The script of a task. It goes on by requeueing where its time is up or it was killed; Slurm itself does so where
/// a task is pre-empted or its node dies.
std::string slurm_script(const SlurmArray& array);

/// Hands it to sbatch and returns its number. Script, output and the array's number are kept in the store's folder
/// slurm/. Throws ConfigError when sbatch is not there or refuses it.
std::string submit(const SlurmArray& array, const std::filesystem::path& store);

/// The tasks of an array that are not over.
struct SlurmTasks {
  std::int64_t running = 0;  ///< or about to begin or end
  std::int64_t waiting = 0;
  std::int64_t count() const { return running + waiting; }
};

/// Nothing where squeue is not there or does not answer.
std::optional<SlurmTasks> tasks_of(const std::string& array);

/// The array that was last submitted for a plan from a store; empty where there is none.
std::string last_array(const std::filesystem::path& store, const std::string& plan);

}  // namespace gala
