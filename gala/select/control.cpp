#include "gala/select/control.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gala/base/error.h"

namespace gala {

ControlSelector::ControlSelector(const Options& options, std::uint64_t seed)
    : options_(options),
      gala_({.threshold = options.threshold,
             .window = options.window,
             .opening_scale = options.opening_scale}),
      draws_(seed, "control") {
  if (options.draw == ControlDraw::kRotation && !options.repeats) {
    fail<ConfigError>("selector control: a rotation does not repeat itself anyway (repeats=yes)");
  }
}

void ControlSelector::attach(const LayerPartition& layers) {
  layers_ = layers.size();
  reset();
}

void ControlSelector::reset() {
  draws_.begin();
  restart();
}

/// Draws go on.
void ControlSelector::restart() {
  next_ = 0;
  chosen_.assign(layers_, 0);
  moved_.assign(layers_, 0);
  wanted_ = travelled_ = 0;
}

/// The layers that may move now, by number.
std::vector<std::size_t> ControlSelector::allowed() {
  const bool all =
      options_.repeats || std::find(moved_.begin(), moved_.end(), std::int64_t{0}) == moved_.end();
  std::vector<std::size_t> numbers;
  for (std::size_t l = 0; l < layers_; ++l) {
    if (all || moved_[l] == 0) numbers.push_back(l);
  }
  return numbers;
}

std::size_t ControlSelector::draw() {
  if (options_.draw == ControlDraw::kRotation) return std::exchange(next_, (next_ + 1) % layers_);
  const std::vector<std::size_t> numbers = allowed();
  if (options_.draw == ControlDraw::kEven) return numbers[draws_.below(numbers.size())];
  std::uint64_t sum = 0;
  for (const std::size_t l : numbers) sum += static_cast<std::uint64_t>(chosen_[l]) + 1;
  std::uint64_t place = draws_.below(sum);
  for (const std::size_t l : numbers) {
    const std::uint64_t share = static_cast<std::uint64_t>(chosen_[l]) + 1;
    if (place < share) return l;
    place -= share;
  }
  return numbers.back();
}

std::vector<double> ControlSelector::select(const Proposal& proposal) {
  if (proposal.clock.opens_window()) std::fill(moved_.begin(), moved_.end(), 0);
  std::vector<double> weights = gala_.select(proposal);
  const auto one = std::find(weights.begin(), weights.end(), 1.0);
  const bool single =
      std::count_if(weights.begin(), weights.end(), [](double w) { return w != 0; }) == 1;
  if (one == weights.end() || !single) return weights;  // an opening, or nobody passes
  const auto theirs = static_cast<std::size_t>(one - weights.begin());
  const std::size_t ours = draw();
  ++chosen_[theirs];
  moved_[ours] = 1;
  weights[theirs] = 0;
  weights[ours] = 1;
  if (!options_.match) return weights;
  const double fade = options_.window > 0 ? 1 - 1 / static_cast<double>(options_.window) : 1;
  wanted_ = wanted_ * fade + std::sqrt(proposal.sums[theirs].update_sq);
  travelled_ = travelled_ * fade + std::sqrt(proposal.sums[ours].update_sq);
  if (travelled_ > 0) weights[ours] = std::min(wanted_ / travelled_, kLargestWeight);
  return weights;
}

void ControlSelector::remember(Archive& archive) {
  draws_.remember(archive);
  archive.value("selector_control_next", next_);
  archive.value("selector_control_chosen", chosen_);
  archive.value("selector_control_moved", moved_);
  archive.value("selector_control_wanted", wanted_);
  archive.value("selector_control_travelled", travelled_);
  if (chosen_.size() != layers_ || moved_.size() != layers_ || next_ >= layers_) {
    fail("the selector's counts are of another number of layers");
  }
}

}  // namespace gala
