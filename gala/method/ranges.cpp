#include "gala/method/ranges.h"

namespace gala {
namespace {

constexpr OptionRange kMethodRanges[] = {
    {"", "adapt_every", kAtLeastOne},
    {"", "inner_steps", {.words = "must lie in 1 .. 10000", .low = 1, .high = 10000}},
    {"", "seed", {.words = "must be at least 0", .low = 0}},
    {"after step ensemble", "source", kShare},
    {"after step kalman", "alpha", kShare},
    {"after step kalman", "gamma", kShare},
    {"after step kalman", "noise", kShare},
    {"after step restore", "share", kShare},
    {"drift features", "keep", kShare},
    {"penalty cosine", "weight", kNotNegative},
    {"penalty distance", "weight", kNotNegative},
    {"penalty fisher", "weight", kNotNegative},
    {"penalty fisher", "images", kNotNegative},
    {"perturbation sam", "rho", kNotNegative},
    {"readout lame", "neighbours", kAtLeastOne},
    {"readout lame", "steps", kAtLeastOne},
    {"readout t3a", "keep", kNotNegative},
    {"reset rule concentration", "above", kShare},
    {"reset rule concentration", "keep", kShare},
    {"reset rule every", "steps", kAtLeastOne},
    {"reset rule loss", "keep", kShare},
    {"store balanced", "size", {.words = "must lie in 2 .. 65536", .low = 2, .high = 65536}},
    {"store balanced", "every", kNotNegative},
    {"store window", "length", {.words = "must lie in 1 .. 65536", .low = 1, .high = 65536}},
    {"teacher mean", "keep", kShare},
    {"teacher mean", "views", {.words = "must lie in 0 .. 1024", .low = 0, .high = 1024}},
};

}  // namespace

std::span<const OptionRange> method_ranges() {
  return kMethodRanges;
}

}  // namespace gala
