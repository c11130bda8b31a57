#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/model_flags.h"
#include "gala/adapt/adapter.h"

namespace gala {

/// Everything `gala adapt` was asked for.
struct AdaptFlags {
  ModelFlags model;
  std::string recipe;  ///< --method: its options are those of `method` that no flag names
  MethodOptions method;
  std::string data, stream;
  std::int64_t batch_size = 32;
  std::int64_t threads = 0;  ///< 0: as many as there are
  std::int64_t save_every = 0;
  std::string trace, events, predictions, save_weights, save_state, resume;
  bool deterministic = false, skip_unreadable = false, profile = false, quiet = false;
};

/// Runs the stream through the adapter and writes what was asked for. Returns the exit code: 0, or
/// 130 when the user stopped it.
int run_adaptation(const AdaptFlags& flags);

}  // namespace gala
