#include "gala/view/ranges.h"

#include "gala/view/patch_order.h"

namespace gala {
namespace {

constexpr OptionRange kViewRanges[] = {
    {"view augment", "noise", kShare},
    {"view augmix", "severity", {.words = "must lie in [0.1, 10]", .low = 0.1, .high = 10}},
    {"view patches", "grid", {.words = "must lie in [2, 32]", .low = 2, .high = kMostGrid}},
};

}  // namespace

std::span<const OptionRange> view_ranges() {
  return kViewRanges;
}

}  // namespace gala
