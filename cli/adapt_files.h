#pragma once
#include "cli/adapt_run.h"
#include "gala/adapt/guard.h"
#include "gala/data/dataset.h"

namespace gala {

/// Throws ConfigError when a file that `gala adapt` shall write cannot be made, is asked for twice,
/// or is one that it reads. Leaves no trace.
void check_outputs(const AdaptFlags& flags, const GuardOptions& guard, const DataSource& source);

}  // namespace gala
