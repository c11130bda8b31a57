#include "gala/loss/ranges.h"

namespace gala {
namespace {

constexpr OptionRange kLossRanges[] = {
    {"loss consistency", "weight", kNotNegative},
    {"loss consistency", "per_class", kNotNegative},
    {"loss entropy", "below", kNotNegative},
    {"loss generalised_cross_entropy",
     "q",
     {.words = "must lie in (0, 1]", .low = 0, .high = 1, .low_is_out = true}},
    {"loss information_maximisation", "epsilon", kAboveZero},
    {"loss marginal_entropy", "looks", {.words = "must lie in 1 .. 256", .low = 1, .high = 256}},
    {"loss pseudo_label", "beta", kShare},
    {"loss shot", "beta", kShare},
    {"loss shot", "theta", kNotNegative},
    {"loss soft_likelihood_ratio",
     "clip",
     {.words = "must lie in (0, 1)", .low = 0, .high = 1, .low_is_out = true, .high_is_out = true}},
    {"loss source_cross_entropy", "weight", kNotNegative},
    {"sample rule certain", "margin", kAboveZero},
    {"sample rule deyo", "margin", kAboveZero},
    {"sample rule deyo",
     "drop",
     {.words = "must lie in [-1, 1)", .low = -1, .high = 1, .high_is_out = true}},
    {"sample rule diverse_certain", "sharpness", kNotNegative},
    {"sample rule diverse_certain", "keep", kShare},
    {"sample rule eta", "margin", kAboveZero},
    {"sample rule eta", "redundancy", kAboveZero},
};

}  // namespace

std::span<const OptionRange> loss_ranges() {
  return kLossRanges;
}

}  // namespace gala
