#include "gala/select/auto_snr.h"

#include <algorithm>

#include "gala/base/error.h"

namespace gala {
namespace {

constexpr double kFloor = 1e-8;

}  // namespace

AutoSnrSelector::AutoSnrSelector(const Options& options) : options_(options) {
  if (!(options.threshold >= 0)) {
    fail<ConfigError>("selector auto_snr: threshold must not be negative, not {}",
                      options.threshold);
  }
  if (options.history < 2) {
    fail<ConfigError>("selector auto_snr: history must be at least 2, not {}", options.history);
  }
}

std::vector<double> AutoSnrSelector::score(const Proposal& proposal) const {
  const std::vector<double> signals =
      options_.definition == SnrDefinition::kCode
          ? proposal.workspace.signal_over_rows(proposal.layout, proposal.gradients, kFloor)
          : proposal.workspace.signal_over_buffers(proposal.layout, history_, kFloor);
  std::vector<double> scores;
  for (const Layer& layer : proposal.layers.layers) {
    double total = 0;
    for (const std::size_t t : layer.tensors) total += signals[t];
    scores.push_back(total / static_cast<double>(layer.count));
  }
  return scores;
}

std::vector<double> AutoSnrSelector::select(const Proposal& proposal) {
  if (options_.definition == SnrDefinition::kPaper) {
    keep_gradients(proposal);
    if (history_.size() < 2) return std::vector<double>(proposal.layers.size(), 1.0);
  }
  std::vector<double> scores = score(proposal);
  if (options_.definition == SnrDefinition::kPaper) {
    const double largest = *std::max_element(scores.begin(), scores.end());
    for (double& value : scores) value = largest > 0 ? value / largest : 0;
  }
  for (double& value : scores) value = value >= options_.threshold ? 1 : 0;
  return scores;
}

/// Into a buffer of the arena's layout, the oldest one where the history is full.
void AutoSnrSelector::keep_gradients(const Proposal& proposal) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(float));
  Memory newest;
  if (std::ssize(history_) == options_.history) {
    newest = history_.front();
    history_.erase(history_.begin());
    proposal.workspace.zero(newest);
  } else {
    newest = proposal.workspace.make(proposal.layout.size * kSize);
  }
  for (std::size_t t = 0; t < proposal.gradients.size(); ++t) {
    const Range range = proposal.layout.entries[t].range;
    if (!proposal.gradients[t]) continue;
    proposal.workspace.copy(newest.data() + range.begin, proposal.gradients[t], range.size * kSize);
  }
  history_.push_back(std::move(newest));
}

void AutoSnrSelector::remember(Archive& archive) {
  std::int64_t count = std::ssize(history_);
  archive.value("selector_history", count);
  if (count < 0 || count > options_.history) fail("a history of {} gradients cannot be", count);
  if (archive.loads()) history_.clear();
  for (std::int64_t k = 0; k < count; ++k) {
    if (archive.loads()) history_.push_back(archive.make_buffer());
    archive.buffer(fmt::format("selector_gradient{}/", k), history_[static_cast<std::size_t>(k)]);
  }
}

}  // namespace gala
