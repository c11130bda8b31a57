#pragma once
#include "gala/base/ranges.h"

namespace gala {

/// What the numbers of a method's other parts may be, and of MethodOptions.
std::span<const OptionRange> method_ranges();

}  // namespace gala
