#pragma once
#include "gala/base/ranges.h"

namespace gala {

/// What the numbers of losses and sample rules may be.
std::span<const OptionRange> loss_ranges();

}  // namespace gala
