#include <fmt/format.h>

#include <utility>

#include "gala/report/table_parts.h"

namespace gala {
namespace {

Cell domainbed_cell(const Pool& pool, const PoolQuery& query) {
  Coverage coverage;
  Cell cell = mean_cell(pool.find(query), accuracy_of, 100, &coverage);
  if (domainbed_sets().contains(query.dataset.value_or(""))) {
    make_partial(cell, environments_note(coverage));
  }
  note_trials(cell, pool.trials({.backbone = query.backbone, .dataset = query.dataset}));
  explain_missing(cell, pool, query);
  return cell;
}

/// Mean over the data sets; comparable only when all four are whole.
Cell domainbed_mean(const Pool& pool, PoolQuery query) {
  query.dataset.reset();
  std::vector<const PoolRun*> runs;
  for (const PoolRun* run : pool.find(query)) {
    if (domainbed_sets().contains(run->labels->dataset)) runs.push_back(run);
  }
  Coverage coverage;
  Cell cell = mean_cell(runs, accuracy_of, 100, &coverage);
  make_partial(cell,
               with_environments(only_note({{coverage.datasets, domainbed_sets()}}), coverage));
  note_trials(cell, pool.trials({.backbone = query.backbone}));
  cell.deviation.reset();
  cell.interval.reset();
  explain_missing(cell, pool, query);
  return cell;
}

/// One row of Table 1.
Row domainbed_row(const Pool& pool, const std::string& backbone, const std::string& loss,
                  const std::string& row, const Names& sets) {
  const bool idle = loss.empty();
  Row result{{backbone, idle ? row : loss, idle ? "–" : row}, {}, false};
  result.loss = loss;
  result.method = row;
  const PoolQuery query{backbone, loss, std::nullopt, plain_row(row), std::nullopt};
  for (const std::string& dataset : sets) {
    PoolQuery one = query;
    one.dataset = dataset;
    Cell cell = domainbed_cell(pool, one);
    add_paper(cell, find_published("table1", backbone, loss, "", row, dataset));
    result.cells.push_back(std::move(cell));
  }
  Cell cell = domainbed_mean(pool, query);
  add_paper(cell, find_published("table1", backbone, loss, "", row, "Mean"));
  result.cells.push_back(std::move(cell));
  return result;
}

}  // namespace

Table domainbed_table(const Pool& pool) {
  Table table;
  table.title = "Table 1: DomainBed";
  table.caption =
      "Accuracy (%) of layer selection methods on DomainBed. Mean over targets, ± sample standard "
      "deviation over trials. The best method for a loss and backbone is in bold.";
  table.heads = {"Backbone", "TTA", "Method"};
  table.of_paper = true;
  const Names sets = with_others({"PACS", "VLCS", "TerraIncognita", "OfficeHome"}, pool.datasets());
  for (const std::string& dataset : sets) table.columns.push_back({.name = dataset});
  table.columns.push_back({.name = "Mean"});
  std::vector<int> block;
  int number = 0;
  const auto add = [&](const std::string& backbone, const std::string& loss, const Names& rows) {
    ++number;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      table.rows.push_back(domainbed_row(pool, backbone, loss, rows[i], sets));
      table.rows.back().border = i == 0;
      // Rows in which nothing adapts do not compete.
      block.push_back(loss.empty() ? ++number : number);
    }
  };
  for (const std::string& backbone : with_others({"ResNet-18", "ResNet-50"}, pool.backbones())) {
    const Names further = further_rows(pool, {backbone, ""}, {"ERM"});
    add(backbone, "", with_others({"ERM"}, further));
    for (const std::string& loss : losses_of(pool)) {
      add(backbone, loss,
          rows_before_last(pool, {backbone, loss}, {"All layers", "AutoRGN", "AutoSNR", "GALA"}));
    }
  }
  mark_best(table, block);
  return table;
}

}  // namespace gala
