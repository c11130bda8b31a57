#include "gala/report/row_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gala {

std::vector<const Table*> boards(const std::vector<TableSet>& tables) {
  std::vector<const Table*> found;
  for (const TableSet& set : tables) {
    const Table& table = set.variants.front();
    if (table.of_methods && table.measured() > 0) found.push_back(&table);
  }
  return found;
}

std::vector<RowGroup> groups_of(const Table& table) {
  std::vector<RowGroup> groups;
  for (const Row& row : table.rows) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const RowGroup& group) {
      return group.first == row.group;
    });
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

}  // namespace gala
