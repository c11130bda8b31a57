#include <fmt/format.h>

#include <utility>

#include "gala/report/table_parts.h"

namespace gala {

Table continual_table(const Pool& pool) {
  Table table;
  table.title = "Table 2: continual TTA";
  table.caption =
      "Error (%) on streams of corruptions, no reset between them. Mean and sample standard "
      "deviation over the corruptions. (The paper's caption says accuracy; its numbers are "
      "errors.) "
      "The best method for a loss is in bold.";
  table.heads = {"TTA", "Method"};
  table.of_paper = true;
  for (const ContinualSet& set : kContinualSets) {
    table.columns.push_back({.name = set.dataset, .over = "", .higher_is_better = false});
  }
  std::vector<int> block;
  int number = 0;
  const auto add = [&](const std::string& loss, const Names& rows) {
    ++number;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Row line{{loss.empty() ? rows[i] : loss, loss.empty() ? "–" : rows[i]}, {}, i == 0};
      line.loss = loss;
      line.method = rows[i];
      const PoolQuery query{std::nullopt, loss, std::nullopt, plain_row(rows[i]), std::nullopt};
      for (const ContinualSet& set : kContinualSets) {
        Cell cell = continual_cell(pool, set, query, true);
        add_paper(cell, find_published("table2", set.backbone, loss, "", rows[i], set.dataset));
        line.cells.push_back(std::move(cell));
      }
      table.rows.push_back(std::move(line));
      // Rows in which nothing adapts do not compete.
      block.push_back(loss.empty() ? ++number : number);
    }
  };
  add("", with_others({"ERM"}, further_rows(pool, {std::nullopt, ""}, {"ERM"})));
  for (const std::string& loss : losses_of(pool)) {
    add(loss, rows_before_last(pool, {std::nullopt, loss}, {"All layers", "GALA"}));
  }
  mark_best(table, block);
  return table;
}

}  // namespace gala
