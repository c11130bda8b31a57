#include "gala/protocol/selection.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "gala/base/error.h"

namespace gala {
namespace {

using Hyper = std::map<std::string, std::string>;
/// What must be there for every set of hyper-parameters: a target and a trial.
using Cell = std::tuple<std::string, std::string, std::int64_t>;

Cell cell_of(const Labels& labels) {
  return {labels.dataset, labels.environment, labels.trial};
}

/// The labels a choice is made for: what the rule does not tell apart is left empty.
Labels scope_of(const Labels& labels, SelectionRule rule) {
  Labels scope = labels;
  scope.hyper.clear();
  if (rule == SelectionRule::kPerLoss) scope.dataset.clear();
  if (rule == SelectionRule::kPerLoss || rule == SelectionRule::kPerDataset) {
    scope.environment.clear();
    scope.trial = 0;
  }
  return scope;
}

double averaged(std::span<const Placed> runs, double (*value)(const Record&)) {
  std::map<std::string, std::map<std::string, std::vector<double>>> values;
  for (const Placed& run : runs) {
    values[run.labels->dataset][run.labels->environment].push_back(value(*run.record));
  }
  std::vector<double> datasets;
  for (const auto& [dataset, environments] : values) {
    std::vector<double> means;
    for (const auto& [environment, trials] : environments) means.push_back(mean(trials));
    datasets.push_back(mean(means));
  }
  return mean(datasets);
}

double validation_of(const Record& record) {
  return record.validation_accuracy().value_or(std::nan(""));
}

double score_of(std::span<const Placed> runs, SelectionRule rule) {
  return rule == SelectionRule::kTrainingDomain ? averaged(runs, validation_of)
                                                : benchmark_accuracy(runs);
}

/// Elects among the sets of one scope and adds the winner's runs.
HyperChoice elect(const Labels& scope, const std::map<Hyper, std::vector<Placed>>& sets,
                  SelectionRule rule, std::vector<Placed>& winners) {
  HyperChoice choice;
  choice.scope = scope;
  std::set<Cell> needed;
  std::set<std::string> datasets;
  for (const auto& [hyper, runs] : sets) {
    for (const Placed& run : runs) {
      needed.insert(cell_of(*run.labels));
      datasets.insert(run.labels->dataset);
    }
  }
  choice.datasets.assign(datasets.begin(), datasets.end());
  const std::vector<Placed>* best = nullptr;
  for (const auto& [hyper, runs] : sets) {
    if (runs.size() < needed.size()) {
      choice.missing.push_back(
          fmt::format("{} ({} of {} runs)", format_hyper(hyper), runs.size(), needed.size()));
      continue;
    }
    const double score = score_of(runs, rule);
    if (std::isnan(score)) continue;
    ++choice.candidates;
    if (best && !(score > choice.score)) continue;
    best = &runs;
    choice.hyper = hyper;
    choice.score = score;
    choice.found = true;
  }
  if (best) winners.insert(winners.end(), best->begin(), best->end());
  return choice;
}

}  // namespace

std::string_view rule_text(SelectionRule rule) {
  switch (rule) {
    case SelectionRule::kPerLoss:
      return "one set for each method, loss and network, by test labels";
    case SelectionRule::kPerDataset:
      return "one set for each method, loss, network and data set, by test labels";
    case SelectionRule::kTrainingDomain:
      return "for each target and trial, by the source's hold-outs, without a target label";
    default:
      return "for each target and trial, by the labels of the scored answers";
  }
}

Selected select_hyper(std::span<const Placed> runs, SelectionRule rule) {
  std::vector<Labels> order;  // scopes in the order of the store
  std::map<Labels, std::map<Hyper, std::vector<Placed>>> scopes;
  for (const Placed& run : runs) {
    const Labels scope = scope_of(*run.labels, rule);
    if (!scopes.contains(scope)) order.push_back(scope);
    scopes[scope][run.labels->hyper].push_back(run);
  }
  Selected selected;
  for (const Labels& scope : order) {
    selected.choices.push_back(elect(scope, scopes[scope], rule, selected.runs));
  }
  return selected;
}

double benchmark_accuracy(std::span<const Placed> runs) {
  return averaged(runs, [](const Record& record) { return record.accuracy(); });
}

std::string format_hyper(const std::map<std::string, std::string>& hyper) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : hyper) parts.push_back(fmt::format("{}={}", name, value));
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace gala
