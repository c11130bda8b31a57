#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gala/base/error.h"
#include "gala/base/spec.h"
#include "gala/report/heat_map.h"
#include "gala/report/row_groups.h"

namespace gala {
namespace {

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

}  // namespace

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

}  // namespace gala
