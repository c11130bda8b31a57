#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gala/base/error.h"
#include "gala/base/spec.h"
#include "gala/report/heat_map.h"
#include "gala/report/table_parts.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostCharts = 12;

std::optional<std::size_t> column_of(const Table& table, std::string_view name) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].name == name) return c;
  }
  return std::nullopt;
}

/// The tables whose rows are whole methods.
std::vector<const Table*> boards(const std::vector<TableSet>& tables) {
  std::vector<const Table*> found;
  for (const TableSet& set : tables) {
    const Table& table = set.variants.front();
    if (table.of_methods && table.measured() > 0) found.push_back(&table);
  }
  return found;
}

/// Rows of one group, in the order of the table.
using Group = std::pair<std::string, std::vector<const Row*>>;

std::vector<Group> groups_of(const Table& table) {
  std::vector<Group> groups;
  for (const Row& row : table.rows) {
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& group) { return group.first == row.group; });
    if (found == groups.end())
      groups.emplace_back(row.group, std::vector{&row});
    else
      found->second.push_back(&row);
  }
  return groups;
}

std::string label_of(const Table& table, const std::string& group) {
  return group.empty() ? table.title : fmt::format("{}: {}", table.title, group);
}

bool has_number(const Cell& cell) {
  return cell.has_value() && std::isfinite(cell.value);
}

// --- error against time ---------------------------------------------------------------------------

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

// --- methods by selectors -------------------------------------------------------------------------

/// The one selector of the rows that adapt; nothing where they have several, or cannot be read.
std::optional<std::string> selector_of(const std::vector<const Row*>& rows) {
  std::set<std::string> names;
  for (const Row* row : rows) {
    for (const Cell& cell : row->cells) {
      for (const Record* run : cell.runs) {
        if (run->steps == 0) continue;
        try {
          names.insert(Spec::parse(run->spec.select).name);
        } catch (const Error&) {
          return std::nullopt;
        }
      }
    }
  }
  return names.size() == 1 ? std::optional(*names.begin()) : std::nullopt;
}

/// What the numbers are held against: doing nothing, in the norm mode of the runs where that was run.
const Row* idle_row(const Table& table, const std::string& norm) {
  const Row* found = nullptr;
  for (const Row& row : table.rows) {
    if (!row.loss.empty() || !has_number(row.cells.front())) continue;
    const bool same_norm = row.cells.front().runs.front()->spec.norm == norm;
    if (!found || same_norm) found = &row;
    if (same_norm) break;
  }
  return found;
}

/// Methods down and selectors across, where each group of the table has one of its own.
std::optional<HeatMap> selector_map(const Table& table) {
  HeatMap map{"method", "selector", "gain", ""};
  std::set<std::string> selectors;
  std::map<std::string, int> norms;
  std::size_t groups = 0;
  for (const auto& [group, rows] : groups_of(table)) {
    std::vector<const Row*> adapting;
    for (const Row* row : rows) {
      if (!row->loss.empty() && has_number(row->cells.front())) adapting.push_back(row);
    }
    if (adapting.empty()) continue;
    const std::optional<std::string> selector = selector_of(adapting);
    if (!selector || !selectors.insert(*selector).second) return std::nullopt;
    ++groups;
    map.columns.push_back(group);
    for (const Row* row : adapting) {
      ++norms[row->cells.front().runs.front()->spec.norm];
      map.cells.push_back({row->method, group, row->cells.front().value, "", false});
    }
  }
  if (groups < 2) return std::nullopt;
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const std::string norm = std::max_element(norms.begin(), norms.end(), by_count)->first;
  const Row* idle = idle_row(table, norm);
  const double sign = table.columns.front().higher_is_better ? 1 : -1;
  std::map<std::string, double> best;
  for (const HeatMap::Cell& cell : map.cells) {
    const auto [found, fresh] = best.emplace(cell.row, sign * cell.value);
    if (!fresh) found->second = std::max(found->second, sign * cell.value);
    if (fresh) map.rows.push_back(cell.row);
  }
  std::stable_sort(map.rows.begin(), map.rows.end(),
                   [&](const auto& a, const auto& b) { return best[a] > best[b]; });
  // Without a run that does nothing, the middle of what was found stands for it.
  double middle = 0;
  if (idle) {
    middle = idle->cells.front().value;
  } else {
    std::vector<double> all;
    for (const HeatMap::Cell& cell : map.cells) all.push_back(cell.value);
    std::sort(all.begin(), all.end());
    middle = quantile(all, 0.5);
  }
  constexpr double kMost = 10;  // a collapse must not take the colour from the rest
  for (HeatMap::Cell& cell : map.cells) {
    cell.text = fmt::format("{:.1f}", cell.value);
    cell.best = sign * cell.value == best[cell.row];
    cell.value = sign * (cell.value - middle);
    map.limit = std::clamp(std::abs(cell.value), map.limit, kMost);
  }
  map.legend = fmt::format("points better than {}",
                           idle ? idle->method : fmt::format("the median, {:.1f} %", middle));
  return map;
}

// --- error over visits ----------------------------------------------------------------------------

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

Figure tradeoff_figure(const std::vector<TableSet>& tables) {
  Figure figure{
      "tradeoff",
      "Error against time",
      "What a method errs, and how long it takes for an image, steps included. Low and to the "
      "left is better; on the line lie the methods that no other beats in both. Drawn "
      "where all were run on the same machine.",
      {}};
  for (const Table* table : boards(tables)) {
    const auto time = column_of(*table, kTimeColumn);
    if (!time) continue;
    const bool accuracy = table->columns.front().higher_is_better;
    for (const auto& [group, rows] : groups_of(*table)) {
      std::vector<Point> points;
      std::set<std::string> machines;
      for (const Row* row : rows) {
        const Cell &score = row->cells.front(), &cost = row->cells[*time];
        if (!has_number(score) || !has_number(cost) || cost.value <= 0) continue;
        points.push_back({row->method, cost.value, accuracy ? 100 - score.value : score.value});
        for (const Record* run : cost.runs) machines.insert(made_with(*run));
      }
      constexpr std::size_t kFewest = 3;
      if (points.size() < kFewest || machines.size() > 1 || figure.charts.size() == kMostCharts) {
        continue;
      }
      std::string label = label_of(*table, group);
      if (!machines.begin()->empty()) label += fmt::format(" ({})", *machines.begin());
      figure.charts.push_back({.label = label, .spec = tradeoff_spec(std::move(points), label)});
    }
  }
  return figure;
}

Figure selector_figure(const std::vector<TableSet>& tables) {
  Figure figure{
      "selectors",
      "Which layers should a method move?",
      "Methods down, the layers that they move across; the number is the error in %, the colour "
      "how "
      "much better (green) or worse (red) that is than doing nothing. The best selector of a "
      "method is boxed. Colours end at 10 points.",
      {}};
  for (const Table* table : boards(tables)) {
    const std::optional<HeatMap> map = selector_map(*table);
    if (!map || figure.charts.size() == kMostCharts) continue;
    figure.charts.push_back({.label = table->title,
                             .spec = heat_map(*map, "Methods by selectors: " + table->title),
                             .wide = true});
  }
  return figure;
}

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
