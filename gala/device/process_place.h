#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace gala {

/// Which of several processes that compute one thing this is, and where they meet.
struct ProcessPlace {
  int rank = 0;
  int size = 1;
  std::optional<int> local_rank;  ///< among the processes of its host
  int local_size = 1;             ///< processes of its host, as far as it is told
  std::string host;               ///< of rank 0
  std::uint16_t port = 0;
  /// torchrun listens at the port itself; else rank 0 does.
  bool agent_listens = false;
  std::string attempt;  ///< which of its beginnings this is, where an agent begins anew

  /// "rank 1 of 4".
  std::string name() const;
};

/// The value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;
const char* of_process(const char* name);

/// What RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT say, as torchrun sets them; nothing
/// where neither RANK nor WORLD_SIZE is set, or this is the only process. Empty variables are not set.
/// Throws ConfigError, naming the variable.
std::optional<ProcessPlace> find_place(const Environment& environment = of_process);

}  // namespace gala
