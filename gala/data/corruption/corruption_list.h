#pragma once
#include <vector>

#include "gala/base/registry.h"

namespace gala {

/// The corruptions with a line on each, the 15 of the benchmark first; for listings.
std::vector<MethodInfo> describe_corruptions();

}  // namespace gala
