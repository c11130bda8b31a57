#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "gala/report/tables.h"

namespace gala {

// What the figures of whole methods share.

/// More charts than these are left out of a figure.
inline constexpr std::size_t kMostCharts = 12;

/// The tables whose rows are whole methods.
std::vector<const Table*> boards(const std::vector<TableSet>& tables);

/// Rows of one group, in the order of the table.
using RowGroup = std::pair<std::string, std::vector<const Row*>>;
std::vector<RowGroup> groups_of(const Table& table);

/// The table's title, with the group behind it where there is one.
std::string label_of(const Table& table, const std::string& group);

/// Whether the cell has a finite value.
bool has_number(const Cell& cell);

}  // namespace gala
