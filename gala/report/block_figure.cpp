#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "gala/report/heat_map.h"
#include "gala/report/published.h"

namespace gala {
namespace {

/// Backbone and loss: one heat map each.
using Panel = std::pair<std::string, std::string>;

/// Accuracy of the source model for each (data set, environment, backbone, trial).
using Shift = std::tuple<std::string, std::string, std::string, std::int64_t>;
Shift shift_of(const Labels& labels) {
  return {labels.dataset, labels.environment, labels.backbone, labels.trial};
}

std::map<Shift, double> source_accuracies(const std::vector<Record>& records) {
  std::map<Shift, double> accuracies;
  for (const Record& record : records) {
    if (record.labels.loss.empty() && record.spec.norm == "source") {
      accuracies[shift_of(record.labels)] = record.accuracy();
    }
  }
  return accuracies;
}

/// Gains in points of (shift, block), the mean over trials.
struct Gains {
  std::map<std::pair<std::string, int>, std::vector<double>> values;
  std::vector<std::string> shifts;  ///< in store order
};

HeatMap map_of(const Gains& gains) {
  HeatMap map{"shift", "block", "gain", "points over ERM", gains.shifts};
  std::map<int, std::string> blocks;
  for (const auto& [place, all] : gains.values) {
    blocks[place.second] = fmt::format("block {}", place.second);
  }
  for (const auto& [number, name] : blocks) map.columns.push_back(name);
  for (const std::string& shift : gains.shifts) {
    double best = -1e9;
    for (const auto& [place, all] : gains.values) {
      if (place.first == shift) best = std::max(best, mean(all));
    }
    for (const auto& [place, all] : gains.values) {
      if (place.first != shift) continue;
      const double gain = mean(all);
      map.limit = std::max(map.limit, std::abs(gain));
      map.cells.push_back(
          {shift, blocks[place.second], gain, fmt::format("{:+.1f}", gain), gain == best});
    }
  }
  return map;
}

}  // namespace

Figure block_figure(const std::vector<Record>& records) {
  Figure figure{
      "blocks",
      "Which block should adapt?",
      "Accuracy of adapting one block alone minus that of the source model, in points; "
      "green is better, red is worse, the best block of a shift is boxed. Hyper-parameters: "
      "one set for each block, loss and network, by test labels (per_loss).",
      {}};
  // By the places in the heat map's own plan, whichever plan made a run first.
  std::vector<Placed> placed = placed_runs(records, "heatmap");
  if (placed.empty()) {
    for (const Record& record : records) placed.push_back({&record, &record.labels});
  }
  std::erase_if(placed, [](const Placed& run) { return !lone_block(*run.record); });
  if (placed.empty()) return figure;
  const std::map<Shift, double> sources = source_accuracies(records);
  std::vector<Panel> order;
  std::map<Panel, Gains> panels;
  for (const Placed& run : select_hyper(placed, SelectionRule::kPerLoss).runs) {
    const auto source = sources.find(shift_of(*run.labels));
    if (source == sources.end()) continue;
    const Panel panel{run.labels->backbone, loss_name(run.labels->loss)};
    if (!panels.contains(panel)) order.push_back(panel);
    Gains& gains = panels[panel];
    const std::string shift = run.labels->environment.empty()
                                  ? run.labels->dataset
                                  : run.labels->dataset + " " + run.labels->environment;
    if (std::find(gains.shifts.begin(), gains.shifts.end(), shift) == gains.shifts.end()) {
      gains.shifts.push_back(shift);
    }
    gains.values[{shift, *lone_block(*run.record)}].push_back(
        100 * (run.record->accuracy() - source->second));
  }
  for (const Panel& panel : order) {
    const std::string label = fmt::format("{}, {}", panel.first, panel.second);
    figure.charts.push_back(
        {.label = label,
         .spec = heat_map(map_of(panels[panel]), "Improvement by block: " + label)});
  }
  return figure;
}

}  // namespace gala
