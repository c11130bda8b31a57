#pragma once
#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gala/protocol/metrics.h"

namespace gala {

/// By what hyper-parameters are chosen from a stored grid. The first, second and fourth see test
/// labels.
enum class SelectionRule {
  kPerLoss,         ///< one set for each method, loss and backbone, over all data sets together
  kPerDataset,      ///< one set for each method, loss, backbone and data set
  kTrainingDomain,  ///< also for each target and trial, by adapting to the source's hold-outs
  kOracle           ///< also for each target and trial, by the very answers that are scored
};
constexpr std::array<std::string_view, 4> enum_names(SelectionRule) {
  return {"per_loss", "per_dataset", "training_domain", "oracle"};
}

/// The rule in words: what one set is chosen for, and by what.
std::string_view rule_text(SelectionRule rule);

/// What a rule chose for one row of a table.
struct HyperChoice {
  Labels scope;  ///< benchmark, backbone, loss, group, row; and, where the rule chooses for each of
                 ///< them, dataset, environment, trial
  std::map<std::string, std::string> hyper;
  double score = 0;                   ///< mean accuracy by which it won, 0 to 1
  std::vector<std::string> datasets;  ///< that it rests on
  std::size_t candidates = 0;         ///< sets that were complete
  std::vector<std::string> missing;   ///< sets left out because runs are missing, and how many
  bool found = false;                 ///< false when no set is complete, or has what the rule needs
};

struct Selected {
  std::vector<Placed> runs;  ///< one for each place but its hyper-parameters
  std::vector<HyperChoice> choices;
};

/// Applies a rule to stored runs; nothing is run. A set of hyper-parameters stands for election only
/// when none of its runs is missing, so that means are over equal sets of targets and trials.
Selected select_hyper(std::span<const Placed> runs, SelectionRule rule);

/// Mean over data sets of the mean over targets of the mean over trials, as the paper averages.
double benchmark_accuracy(std::span<const Placed> runs);

/// "rate=5e-05, inner_steps=3", or "-".
std::string format_hyper(const std::map<std::string, std::string>& hyper);

}  // namespace gala
