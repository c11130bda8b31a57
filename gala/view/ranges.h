#pragma once
#include "gala/base/ranges.h"

namespace gala {

/// What the numbers of views may be.
std::span<const OptionRange> view_ranges();

}  // namespace gala
