#include <fmt/format.h>

#include "gala/report/printers.h"

namespace gala {
namespace {

std::string cell_text(const Cell& cell, const Column& column) {
  std::string text = value_text(cell, column);
  if (cell.best) text = "**" + text + "**";
  const std::string deviation = deviation_text(cell);
  if (!deviation.empty()) text += " ±" + deviation;
  if (cell.state == Cell::State::kPartial) text += fmt::format(" *{}*", escape_markdown(cell.note));
  if (cell.paper) text += fmt::format(" [{:.{}f}]", *cell.paper, column.digits);
  return text;
}

std::string heading(const Column& column) {
  const std::string arrow = !column.directed ? "" : column.higher_is_better ? " ↑" : " ↓";
  const std::string name = escape_markdown(column.name) + arrow;
  return column.over.empty() ? name : escape_markdown(column.over) + ": " + name;
}

void print(const Table& table, std::string& out) {
  out += fmt::format("### {}\n\n", escape_markdown(table.title));
  if (table.measured() == 0) {
    out += "Not run.\n\n";
    return;
  }
  out += escape_markdown(table.caption);
  if (table.of_paper) out += " In brackets: the paper's numbers.";
  if (!table.norm.empty()) {
    out += fmt::format(" Norm mode of the adapting runs: {}.", escape_markdown(table.norm));
  }
  if (!table.rule.empty()) {
    out += fmt::format(" Hyper-parameters: {}.", escape_markdown(rule_words(table.rule)));
  }
  out += "\n\n|";
  for (const std::string& head : table.heads) out += fmt::format(" {} |", escape_markdown(head));
  for (const Column& column : table.columns) out += fmt::format(" {} |", heading(column));
  out += "\n|";
  for (std::size_t i = 0; i < table.heads.size(); ++i) out += " --- |";
  for (std::size_t i = 0; i < table.columns.size(); ++i) out += " ---: |";
  out += '\n';
  for (const Row& row : table.rows) {
    out += '|';
    for (const std::string& head : row.heads) out += fmt::format(" {} |", escape_markdown(head));
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      out += fmt::format(" {} |", cell_text(row.cells[c], table.columns[c]));
    }
    out += '\n';
  }
  out += '\n';
  for (const std::string& note : table.notes) out += fmt::format("- {}\n", escape_markdown(note));
  if (!table.notes.empty()) out += '\n';
}

}  // namespace

std::string to_markdown(const std::vector<TableSet>& tables, const PrintChoice& choice) {
  std::string out;
  for (const TableSet& set : tables) print(set.variant(choice.rule, choice.norm), out);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace gala
