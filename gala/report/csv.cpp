#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "gala/report/printers.h"

namespace gala {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : clean_text(text)) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}
std::string number(const std::optional<double>& value) {
  return value ? number(*value) : "";
}

std::string keys(const Cell& cell) {
  std::vector<std::string> list;
  for (const Record* record : cell.runs) list.push_back(record->key);
  return fmt::format("{}", fmt::join(list, " "));
}

}  // namespace

std::string to_csv(const std::vector<TableSet>& tables) {
  std::string out =
      "table,rule,norm,heads,column,state,value,deviation,low,high,samples,unit,best,paper,"
      "paper_deviation,difference,hyper,note,runs\r\n";
  for (const TableSet& set : tables) {
    for (const Table& table : set.variants) {
      for (const Row& row : table.rows) {
        for (std::size_t c = 0; c < row.cells.size(); ++c) {
          const Cell& cell = row.cells[c];
          const Column& column = table.columns[c];
          const std::string value = cell.has_value() ? number(cell.value) : "";
          const std::string low = cell.interval ? number(cell.interval->low) : "";
          const std::string high = cell.interval ? number(cell.interval->high) : "";
          out += fmt::format(
              "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n", quoted(table.id),
              quoted(table.rule), quoted(table.norm),
              quoted(fmt::format("{}", fmt::join(row.heads, " / "))),
              quoted(column.over.empty() ? column.name : column.over + ": " + column.name),
              quoted(state_name(cell.state)), value, number(cell.deviation), low, high,
              cell.samples, quoted(column.unit), cell.best ? 1 : 0, number(cell.paper),
              number(cell.paper_deviation), number(cell.difference()), quoted(cell.hyper),
              quoted(cell.note), quoted(keys(cell)));
        }
      }
    }
  }
  return out;
}

}  // namespace gala
