#pragma once
#include <vector>

#include "gala/protocol/resolve.h"
#include "gala/protocol/store.h"

namespace gala {

struct Machine;

/// What will be done, to standard error.
void print_run_heading(const ExperimentPlan& plan, const std::vector<ReadyRun>& runs,
                       const std::vector<const ReadyRun*>& to_do, std::int64_t new_places);

/// The runs of a plan, which of them are left to do, and how long that may take by the records of
/// the same network on the same device, to standard output. `store` may be null.
void print_dry_run(const ExperimentPlan& plan, const std::vector<ReadyRun>& runs,
                   const std::vector<const ReadyRun*>& to_do, const Store* store,
                   const Machine& machine);

/// The results so far of the runs asked for, by every rule for hyper-parameters where the plan has
/// some, to standard output.
void print_results(const ExperimentPlan& plan, const std::vector<ReadyRun>& asked_for,
                   const std::vector<Record>& records);

}  // namespace gala
