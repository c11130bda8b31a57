#include <fmt/format.h>

#include "gala/report/printers.h"

namespace gala {
namespace {

std::string cell_text(const Cell& cell, const Column& column) {
  if (!cell.has_value()) {
    return cell.state == Cell::State::kNotRun ? "\\textit{not run}" : "N/A";
  }
  std::string text = value_text(cell, column);
  if (text.starts_with('-')) text = fmt::format("${}$", text);
  const std::string deviation = deviation_text(cell);
  if (!deviation.empty()) text += fmt::format("~($\\pm {}$)", deviation);
  if (cell.best) text = fmt::format("\\textbf{{{}}}", text);
  if (cell.state == Cell::State::kPartial) {
    text += fmt::format("~{{\\scriptsize {}}}", escape_latex(cell.note));
  }
  return text;
}

/// Headings that span columns, where there are some.
void print_spans(const Table& table, std::string& out) {
  std::string line, rules;
  line.append(table.heads.size() - 1, '&');
  bool any = false;
  for (std::size_t c = 0; c < table.columns.size();) {
    std::size_t end = c;
    while (end < table.columns.size() && table.columns[end].over == table.columns[c].over) ++end;
    line += fmt::format(" & \\multicolumn{{{}}}{{c}}{{\\textbf{{{}}}}}", end - c,
                        escape_latex(table.columns[c].over));
    rules += fmt::format("\\cmidrule(lr){{{}-{}}}", table.heads.size() + c + 1,
                         table.heads.size() + end);
    any = any || !table.columns[c].over.empty();
    c = end;
  }
  if (any) out += fmt::format("{} \\\\\n{}\n", line, rules);
}

void print_rows(const Table& table, std::string& out) {
  std::vector<std::string> above(table.heads.size());
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const Row& row = table.rows[r];
    if (row.border && r > 0) out += "\\midrule\n";
    bool same = !row.border;
    for (std::size_t h = 0; h < row.heads.size(); ++h) {
      // A head that stands above is not said twice.
      same = same && row.heads[h] == above[h];
      if (h > 0) out += " & ";
      if (!same) out += escape_latex(row.heads[h]);
    }
    above = row.heads;
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      out += fmt::format(" & {}", cell_text(row.cells[c], table.columns[c]));
    }
    out += " \\\\\n";
  }
}

void print(const Table& table, std::string& out) {
  if (table.measured() == 0) {
    out += fmt::format("% {}: not run\n\n", escape_latex(table.title));
    return;
  }
  out += "\\begin{table}\n\\centering\n";
  out += fmt::format("\\begin{{tabular}}{{{}{}}}\n\\toprule\n",
                     std::string(table.heads.size(), 'l'), std::string(table.columns.size(), 'c'));
  print_spans(table, out);
  for (std::size_t h = 0; h < table.heads.size(); ++h) {
    out += fmt::format("{}\\textbf{{{}}}", h == 0 ? "" : " & ", escape_latex(table.heads[h]));
  }
  for (const Column& column : table.columns) {
    out += fmt::format(" & \\textbf{{{}}}{}", escape_latex(column.name),
                       !column.directed          ? ""
                       : column.higher_is_better ? " $\\uparrow$"
                                                 : " $\\downarrow$");
  }
  out += " \\\\\n\\midrule\n";
  print_rows(table, out);
  out += fmt::format("\\bottomrule\n\\end{{tabular}}\n\\caption{{{}", escape_latex(table.caption));
  if (!table.norm.empty()) out += fmt::format(" Norm mode: {}.", escape_latex(table.norm));
  if (!table.rule.empty()) {
    out += fmt::format(" Hyper-parameters: {}.", escape_latex(rule_words(table.rule)));
  }
  for (const std::string& note : table.notes) out += fmt::format(" {}", escape_latex(note));
  out += fmt::format("}}\n\\label{{tab:{}}}\n\\end{{table}}\n\n", [&] {
    std::string label;
    for (const char c : table.id) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      label += plain ? c : '-';
    }
    return label;
  }());
}

}  // namespace

std::string to_latex(const std::vector<TableSet>& tables, const PrintChoice& choice) {
  std::string out = "% \\usepackage{booktabs}\n\n";
  for (const TableSet& set : tables) print(set.variant(choice.rule, choice.norm), out);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace gala
