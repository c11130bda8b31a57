#pragma once
#include <string>

#include "gala/device/process_group.h"
#include "gala/tensor/state.h"
#include "gala/train/setup.h"

namespace gala {

/// Throws ConfigError unless `processes` can share the plan's batches evenly.
void check_shares(const TrainPlan& plan, const Training& training, int processes);

/// What one of several processes sees of a curriculum: of each batch its part, as many images as every other
/// process has. The images, their order and how they are varied are those of the whole. Batches must be
/// divisible, as `check_shares` says.
Curriculum share_of(Curriculum whole, const ProcessGroup& processes);

/// Every size-th batch of a stream, from that of the rank on; each a segment. May be empty.
Stream batches_of(const Stream& whole, std::int64_t batch_size, const ProcessGroup& processes);

/// The state that rank 0 has, in every process.
State from_first(const State& state, ProcessGroup& processes);

/// Throws ConfigError, naming what is different, where the settings are not those of rank 0.
void check_agreement(const nlohmann::json& settings, ProcessGroup& processes);

}  // namespace gala
