#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "gala/report/figures.h"
#include "gala/report/published.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

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

Json heat_map(const Gains& gains, const std::string& label) {
  Json values = Json::array();
  double largest = 1;
  for (const std::string& shift : gains.shifts) {
    double best = -1e9;
    for (const auto& [place, all] : gains.values) {
      if (place.first == shift) best = std::max(best, mean(all));
    }
    for (const auto& [place, all] : gains.values) {
      if (place.first != shift) continue;
      const double gain = mean(all);
      largest = std::max(largest, std::abs(gain));
      values.push_back({{"shift", shift},
                        {"block", fmt::format("block {}", place.second)},
                        {"gain", gain},
                        {"text", fmt::format("{:+.1f}", gain)},
                        {"best", gain == best}});
    }
  }
  Json spec = chart_base("Improvement by block: " + label,
                         static_cast<int>(std::max<std::size_t>(2, gains.shifts.size())) * 30);
  spec["data"] = {{"values", values}};
  const Json x = {
      {"field", "block"},
      {"type", "nominal"},
      {"title", nullptr},
      {"axis", {{"orient", "top"}, {"labelAngle", 0}, {"domain", false}, {"ticks", false}}}};
  const Json y = {{"field", "shift"},
                  {"type", "nominal"},
                  {"title", nullptr},
                  {"sort", gains.shifts},
                  {"axis", {{"domain", false}, {"ticks", false}}}};
  spec["encoding"] = {{"x", x}, {"y", y}};
  spec["layer"] = Json::array();
  spec["layer"].push_back({{"mark", {{"type", "rect"}, {"tooltip", true}}},
                           {"encoding",
                            {{"color",
                              {{"field", "gain"},
                               {"type", "quantitative"},
                               {"title", "points over ERM"},
                               {"scale", {{"domain", {-largest, largest}}, {"range", "diverging"}}},
                               {"legend", {{"orient", "bottom"}, {"gradientLength", 160}}}}}}}});
  spec["layer"].push_back({{"transform", {{{"filter", {{"field", "best"}, {"equal", true}}}}}},
                           {"mark", {{"type", "rect"}, {"style", "box"}, {"filled", false}}}});
  spec["layer"].push_back({{"mark", {{"type", "text"}, {"style", "cell-label"}}},
                           {"encoding", {{"text", {{"field", "text"}}}}}});
  return spec;
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
    figure.charts.push_back({.label = label, .spec = heat_map(panels[panel], label)});
  }
  return figure;
}

}  // namespace gala
