#include <fmt/format.h>

#include "gala/report/figures.h"
#include "gala/report/row_groups.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

/// The mean over runs of the error at each visit, in %; empty where they do not recur alike.
std::vector<double> mean_visits(const std::vector<const Record*>& runs) {
  std::vector<double> means;
  for (const Record* run : runs) {
    const std::vector<double> errors = visit_errors(*run);
    if (errors.empty() || (!means.empty() && errors.size() != means.size())) return {};
    means.resize(errors.size(), 0.0);
    for (std::size_t v = 0; v < errors.size(); ++v) {
      means[v] += 100 * errors[v] / static_cast<double>(runs.size());
    }
  }
  return means;
}

Json visits_spec(const std::vector<std::pair<std::string, std::vector<double>>>& lines,
                 const std::string& label) {
  Json values = Json::array();
  std::vector<std::string> methods;
  for (const auto& [method, errors] : lines) {
    methods.push_back(method);
    for (std::size_t v = 0; v < errors.size(); ++v) {
      values.push_back({{"method", method}, {"visit", v + 1}, {"error", errors[v]}});
    }
  }
  Json spec = chart_base("Error over visits: " + label, 300);
  spec["data"] = {{"values", values}};
  spec["mark"] = {{"type", "line"}, {"point", {{"size", 22}}}, {"strokeWidth", 1.8}};
  spec["encoding"] = {{"x",
                       {{"field", "visit"},
                        {"type", "quantitative"},
                        {"title", "visit"},
                        {"scale", {{"zero", false}, {"nice", false}, {"padding", 8}}},
                        {"axis", {{"grid", false}, {"tickMinStep", 1}}}}},
                      {"y",
                       {{"field", "error"},
                        {"type", "quantitative"},
                        {"title", "error in %"},
                        {"scale", {{"zero", false}}}}},
                      {"color",
                       {{"field", "method"},
                        {"type", "nominal"},
                        {"title", nullptr},
                        {"scale", method_colours(methods)},
                        {"legend", {{"orient", "bottom"}}}}},
                      {"tooltip",
                       {{{"field", "method"}},
                        {{"field", "visit"}},
                        {{"field", "error"}, {"format", ".2f"}, {"title", "error in %"}}}}};
  return spec;
}

}  // namespace

Figure visits_figure(const std::vector<TableSet>& tables) {
  Figure figure{
      "visits",
      "Does it last?",
      "Error at each visit of a stream that comes again and again, the mean over its domains and "
      "over trials. A line that rises is a method that wears out; one that stays low "
      "lasts.",
      {}};
  for (const TableSet& set : tables) {
    const Table& table = set.variants.front();
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const Column& column = table.columns[c];
      if (column.name != "Error") continue;
      for (const auto& [group, rows] : groups_of(table)) {
        std::vector<std::pair<std::string, std::vector<double>>> lines;
        for (const Row* row : rows) {
          std::vector<double> errors = mean_visits(row->cells[c].runs);
          if (errors.empty()) continue;
          const bool by_loss = !table.of_methods && !row->loss.empty();
          lines.emplace_back(by_loss ? row->method + ", " + row->loss : row->method,
                             std::move(errors));
        }
        if (lines.empty() || figure.charts.size() == kMostCharts) continue;
        std::string label = label_of(table, group);
        if (!column.over.empty()) label += ", " + column.over;
        figure.charts.push_back({.label = label, .spec = visits_spec(lines, label), .wide = true});
      }
    }
  }
  return figure;
}

}  // namespace gala
