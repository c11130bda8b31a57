#pragma once
#include <memory>
#include <optional>

#include "cli/train_run.h"
#include "gala/device/process_group.h"
#include "gala/train/setup.h"

namespace gala {

/// A plan with the flags worked in and everything it names opened.
struct OpenedPlan {
  TrainPlan plan;
  Training training;
  at::Device device = at::kCPU;
  std::optional<ProcessPlace> place;        ///< among several processes
  std::unique_ptr<ProcessGroup> processes;  ///< null: this one is alone

  /// Rank 0 writes and speaks for all.
  bool leads() const { return !place || place->rank == 0; }
};

/// Opens what the flags name and, where this is one of several processes, meets the others. Throws ConfigError
/// with all that is wrong.
OpenedPlan open_plan(const TrainFlags& flags);

}  // namespace gala
