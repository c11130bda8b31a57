#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gala/report/figures.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kParts[] = {"forward", "backward", "measure", "select", "apply"};

struct Costs {
  std::map<std::string, std::vector<double>> parts;
  std::vector<double> memory;
};

struct Panel {
  std::vector<std::string> methods;
  std::map<std::string, Costs> costs;
};

Json time_spec(const Panel& panel, const std::string& label) {
  Json values = Json::array();
  for (const std::string& method : panel.methods) {
    int order = 0;
    for (const char* part : kParts) {
      const auto found = panel.costs.at(method).parts.find(part);
      if (found == panel.costs.at(method).parts.end()) continue;
      values.push_back(
          {{"method", method}, {"part", part}, {"ms", mean(found->second)}, {"order", order++}});
    }
  }
  Json spec = chart_base("Time a step: " + label, static_cast<int>(panel.methods.size()) * 24 + 10);
  spec["data"] = {{"values", values}};
  spec["mark"] = {{"type", "bar"}, {"tooltip", true}};
  spec["encoding"] = {
      {"y",
       {{"field", "method"}, {"type", "nominal"}, {"title", nullptr}, {"sort", panel.methods}}},
      {"x", {{"field", "ms"}, {"type", "quantitative"}, {"title", "ms a step, mean"}}},
      {"order", {{"field", "order"}}},
      {"color",
       {{"field", "part"},
        {"type", "nominal"},
        {"title", nullptr},
        {"scale",
         {{"domain", {"forward", "backward", "measure", "select", "apply"}},
          {"range", {"#8fb8c9", "#3f7f9f", "#e0992a", "#b56aa8", "#d9542b"}}}}}}};
  return spec;
}

Json memory_spec(const Panel& panel, const std::string& label) {
  Json values = Json::array();
  constexpr double kGigabyte = 1e9;
  for (const std::string& method : panel.methods) {
    const std::vector<double>& memory = panel.costs.at(method).memory;
    if (!memory.empty()) values.push_back({{"method", method}, {"gb", mean(memory) / kGigabyte}});
  }
  if (values.empty()) return {};
  Json spec = chart_base("Peak memory: " + label, static_cast<int>(panel.methods.size()) * 24 + 10);
  spec["data"] = {{"values", values}};
  spec["mark"] = {{"type", "bar"}, {"tooltip", true}, {"color", "#3f7f9f"}};
  spec["encoding"] = {
      {"y",
       {{"field", "method"}, {"type", "nominal"}, {"title", nullptr}, {"sort", panel.methods}}},
      {"x", {{"field", "gb"}, {"type", "quantitative"}, {"title", "peak memory in GB"}}}};
  return spec;
}

}  // namespace

Figure cost_figure(const std::vector<TableSet>& tables) {
  Figure figure{"cost",
                "Time and memory",
                "Mean time of an optimizer step by its parts, and the most memory held. Runs side "
                "by side share the memory that is counted.",
                {}};
  std::vector<std::string> order;
  std::map<std::string, Panel> panels;
  for (const ShownRun& shown : shown_runs(tables)) {
    const Record& record = *shown.record;
    if (record.steps == 0 || record.cost.parts.empty()) continue;
    const std::string label =
        fmt::format("{}, batch {}, {}", record.labels.backbone, record.spec.batch_size,
                    provenance_text(record, "device"));
    if (!panels.contains(label)) order.push_back(label);
    Panel& panel = panels[label];
    if (!panel.costs.contains(shown.name)) panel.methods.push_back(shown.name);
    Costs& costs = panel.costs[shown.name];
    for (const auto& [part, time] : record.cost.parts) {
      if (std::isfinite(time)) costs.parts[part].push_back(time);
    }
    if (record.cost.peak_memory > 0) {
      costs.memory.push_back(static_cast<double>(record.cost.peak_memory));
    }
  }
  constexpr std::size_t kMost = 8;
  for (const std::string& label : order) {
    if (figure.charts.size() >= kMost) break;
    figure.charts.push_back({.label = label + ": time", .spec = time_spec(panels[label], label)});
    Json memory = memory_spec(panels[label], label);
    if (!memory.is_null()) {
      figure.charts.push_back({.label = label + ": memory", .spec = std::move(memory)});
    }
  }
  return figure;
}

}  // namespace gala
