#pragma once
#include "cli/adapt_run.h"
#include "gala/adapt/guard.h"
#include "gala/data/dataset.h"

namespace gala {

/// Throws ConfigError when a file that `gala adapt` shall write cannot be made, is asked for twice,
/// or is one that it reads. Leaves no trace.
void check_outputs(const AdaptFlags& flags, const GuardOptions& guard, const DataSource& source);

/// Throws ConfigError when labels go beyond the head of the network, or a data set with named
/// classes has another number of them. Says in `warnings` when both have names and they differ.
void check_classes(const DataSource& source, const Model& model,
                   std::vector<std::string>& warnings);

}  // namespace gala
