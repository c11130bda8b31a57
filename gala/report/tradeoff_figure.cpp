#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gala/report/figures.h"
#include "gala/report/row_groups.h"
#include "gala/report/table_parts.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::size_t> column_of(const Table& table, std::string_view name) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].name == name) return c;
  }
  return std::nullopt;
}

struct Point {
  std::string method;
  double time = 0, error = 0;
  bool best = false;    ///< none is both faster and better
  double label_at = 0;  ///< the error at whose height the name stands
};

/// Marks what no other beats in both, ties in favour of the first.
void mark_frontier(std::vector<Point>& points) {
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::pair(a.time, a.error) < std::pair(b.time, b.error);
  });
  double least = INFINITY;
  for (Point& point : points) {
    point.best = point.error < least;
    least = std::min(least, point.error);
  }
}

/// The axis of errors: logarithmic where a collapse would leave no room for the others.
struct ErrorAxis {
  bool logarithmic = false;
  double low = 0, high = 1, height = 1;

  ErrorAxis(const std::vector<Point>& points, double pixels) : height(pixels) {
    low = high = points.front().error;
    for (const Point& point : points) {
      low = std::min(low, point.error);
      high = std::max(high, point.error);
    }
    logarithmic = low > 0 && high > 2 * low;
    const double least_room = 0.01;
    const double room = std::max(least_room, 0.06 * (place(high) - place(low)));
    const double below = place(low) - room, above = place(high) + room;
    low = logarithmic ? std::exp(below) : std::max(0.0, below);
    high = logarithmic ? std::exp(above) : above;
  }
  double place(double error) const { return logarithmic ? std::log(error) : error; }
  double pixel(double error) const {
    return height * (place(high) - place(error)) / (place(high) - place(low));
  }
  double error_at(double pixel) const {
    const double at = place(high) - pixel / height * (place(high) - place(low));
    return logarithmic ? std::exp(at) : at;
  }
};

/// Names stand beside the plot, as near to the height of their points as they can without touching.
void place_names(std::vector<Point>& points, const ErrorAxis& axis) {
  constexpr double kLine = 14;
  std::vector<Point*> names;
  for (Point& point : points) names.push_back(&point);
  std::stable_sort(names.begin(), names.end(),
                   [](const Point* a, const Point* b) { return a->error > b->error; });
  // Names that touch form a bundle, which lies around the mean of its points.
  struct Bundle {
    double sum;  ///< of where the first name would stand for each
    double count;
    double at(double height) const {
      const double highest = std::max(0.0, height - kLine * (count - 1));
      return std::clamp(sum / count, 0.0, highest);
    }
  };
  std::vector<Bundle> bundles;
  for (const Point* name : names) {
    bundles.push_back({axis.pixel(name->error), 1});
    while (bundles.size() > 1) {
      Bundle &above = bundles[bundles.size() - 2], &below = bundles.back();
      if (above.at(axis.height) + kLine * above.count <= below.at(axis.height)) break;
      above.sum += below.sum - kLine * above.count * below.count;
      above.count += below.count;
      bundles.pop_back();
    }
  }
  std::size_t next = 0;
  for (const Bundle& bundle : bundles) {
    for (double i = 0; i < bundle.count; ++i) {
      names[next++]->label_at = axis.error_at(bundle.at(axis.height) + kLine * i);
    }
  }
}

Json tradeoff_spec(std::vector<Point> points, const std::string& label) {
  mark_frontier(points);
  const int height = std::max(280, 20 * static_cast<int>(points.size()));
  const ErrorAxis axis(points, height);
  place_names(points, axis);
  Json values = Json::array();
  for (const Point& point : points) {
    values.push_back({{"method", point.method},
                      {"ms", point.time},
                      {"error", point.error},
                      {"frontier", point.best},
                      {"label", fmt::format("{} {:.1f}", point.method, point.error)},
                      {"label_at", point.label_at}});
  }
  Json spec = chart_base("Error against time: " + label, height);
  spec["data"] = {{"values", values}};
  const Json x = {
      {"field", "ms"},
      {"type", "quantitative"},
      {"title", "ms per image"},
      {"scale", {{"type", "log"}, {"nice", false}, {"padding", 12}}},
      {"axis", {{"format", "~g"}, {"grid", false}, {"tickCount", 6}, {"labelOverlap", true}}}};
  const auto y = [&](const char* field) -> Json {
    return {
        {"field", field},
        {"type", "quantitative"},
        {"title", "error in %"},
        {"scale",
         {{"type", axis.logarithmic ? "log" : "linear"},
          {"domain", {axis.low, axis.high}},
          {"nice", false}}},
        {"axis", {{"format", "~g"}, {"grid", false}, {"tickCount", 6}, {"labelOverlap", true}}}};
  };
  const auto only = [](bool frontier) -> Json {
    return {{{"filter", {{"field", "frontier"}, {"equal", frontier}}}}};
  };
  const Json tooltip = {{{"field", "method"}},
                        {{"field", "error"}, {"format", ".2f"}, {"title", "error in %"}},
                        {{"field", "ms"}, {"format", ".3g"}, {"title", "ms per image"}}};
  spec["layer"] = Json::array();
  spec["layer"].push_back({{"mark", {{"type", "rule"}, {"style", "border"}, {"strokeWidth", 0.7}}},
                           {"encoding",
                            {{"x", x},
                             {"x2", {{"value", "width"}}},
                             {"y", y("error")},
                             {"y2", {{"field", "label_at"}}}}}});
  spec["layer"].push_back(
      {{"transform", only(true)},
       {"mark", {{"type", "line"}, {"style", "main"}, {"interpolate", "step-after"}}},
       {"encoding", {{"x", x}, {"y", y("error")}}}});
  for (const bool frontier : {false, true}) {
    spec["layer"].push_back({{"transform", only(frontier)},
                             {"mark",
                              {{"type", "point"},
                               {"filled", true},
                               {"opacity", 1},
                               {"size", frontier ? 80 : 50},
                               {"style", frontier ? "chosen" : "soft"}}},
                             {"encoding", {{"x", x}, {"y", y("error")}, {"tooltip", tooltip}}}});
  }
  spec["layer"].push_back(
      {{"mark",
        {{"type", "text"}, {"align", "left"}, {"baseline", "middle"}, {"dx", 5}, {"fontSize", 11}}},
       {"encoding",
        {{"x", {{"value", "width"}}}, {"y", y("label_at")}, {"text", {{"field", "label"}}}}}});
  return spec;
}

}  // namespace

Figure tradeoff_figure(const std::vector<TableSet>& tables) {
  Figure figure{
      "tradeoff",
      "Error against time",
      "What a method errs, and how long it takes for an image, steps included. Low and to the "
      "left is better; on the line lie the methods that no other beats in both. Times of "
      "different machines, or of runs side by side and alone, do not compare: drawn are the "
      "methods of the machine that ran most.",
      {}};
  for (const Table* table : boards(tables)) {
    const auto time = column_of(*table, kTimeColumn);
    if (!time) continue;
    const bool accuracy = table->columns.front().higher_is_better;
    for (const auto& [group, rows] : groups_of(*table)) {
      std::map<std::string, std::vector<Point>> by_machine;
      std::size_t count = 0;
      for (const Row* row : rows) {
        const Cell &score = row->cells.front(), &cost = row->cells[*time];
        if (!has_number(score) || !has_number(cost) || cost.value <= 0) continue;
        ++count;
        std::set<std::string> machines;
        for (const Record* run : cost.runs) machines.insert(made_with(*run));
        if (machines.size() > 1) continue;
        by_machine[machines.empty() ? "" : *machines.begin()].push_back(
            {row->method, cost.value, accuracy ? 100 - score.value : score.value});
      }
      if (by_machine.empty()) continue;
      auto& [machine, points] = *std::max_element(
          by_machine.begin(), by_machine.end(),
          [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      constexpr std::size_t kFewest = 3;
      if (points.size() < kFewest || figure.charts.size() == kMostCharts) continue;
      std::string label = label_of(*table, group);
      if (!machine.empty()) label += fmt::format(" ({})", machine);
      if (points.size() < count) {
        label += fmt::format(", {} of {} methods", points.size(), count);
      }
      figure.charts.push_back({.label = label, .spec = tradeoff_spec(std::move(points), label)});
    }
  }
  return figure;
}

}  // namespace gala
