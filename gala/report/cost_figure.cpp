#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gala/report/figures.h"
#include "gala/report/table_parts.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

struct Part {
  const char* name;
  const char* color;
};
/// Where a pass is one recorded graph, its parts are not timed apart and all of it stands as forward.
constexpr const char* kWholePass = "forward to measure";
constexpr Part kParts[] = {{kWholePass, "#6c9cb5"}, {"forward", "#8fb8c9"}, {"backward", "#3f7f9f"},
                           {"measure", "#e0992a"},  {"select", "#b56aa8"},  {"apply", "#d9542b"}};

std::map<std::string, double> parts_of(const Cost& cost) {
  std::map<std::string, double> parts(cost.parts.begin(), cost.parts.end());
  if (parts["backward"] > 0 || parts["measure"] > 0) return parts;
  parts[kWholePass] = parts["forward"];
  for (const char* name : {"forward", "backward", "measure"}) parts.erase(name);
  return parts;
}

struct Costs {
  std::map<std::string, std::vector<double>> parts;
  std::vector<double> memory;
};

struct Panel {
  std::vector<std::string> methods;
  std::map<std::string, Costs> costs;
};

/// What times and memory are compared within: the same work under the same conditions.
std::string panel_of(const Record& record) {
  return fmt::format("{}, batch {}, {}{}", record.labels.backbone, record.spec.batch_size,
                     provenance_text(record, "device"), conditions_of(record));
}

Json time_spec(const Panel& panel, const std::string& label) {
  Json values = Json::array(), names = Json::array(), colors = Json::array();
  int order = 0;
  for (const Part& part : kParts) {
    bool seen = false;
    for (const std::string& method : panel.methods) {
      const auto found = panel.costs.at(method).parts.find(part.name);
      if (found == panel.costs.at(method).parts.end()) continue;
      values.push_back(
          {{"method", method}, {"part", part.name}, {"ms", mean(found->second)}, {"order", order}});
      seen = true;
    }
    ++order;
    if (!seen) continue;
    names.push_back(part.name);
    colors.push_back(part.color);
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
        {"scale", {{"domain", names}, {"range", colors}}}}}};
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
  Figure figure{
      "cost",
      "Time and memory",
      "Mean time of an optimizer step by its parts, and the most memory held. On a GPU a "
      "pass is one graph, whose parts are not timed apart; runs made at once share the device "
      "and the memory that is counted.",
      {}};
  std::vector<std::string> order;
  std::map<std::string, Panel> panels;
  for (const ShownRun& shown : shown_runs(tables)) {
    const Record& record = *shown.record;
    if (record.steps == 0 || record.cost.parts.empty()) continue;
    std::string label = panel_of(record);
    if (!shown.group.empty() && shown.group != record.labels.backbone) label += ", " + shown.group;
    if (!panels.contains(label)) order.push_back(label);
    Panel& panel = panels[label];
    if (!panel.costs.contains(shown.name)) panel.methods.push_back(shown.name);
    Costs& costs = panel.costs[shown.name];
    for (const auto& [part, time] : parts_of(record.cost)) {
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
