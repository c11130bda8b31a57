#include <fmt/format.h>

#include <utility>

#include "gala/report/table_parts.h"

namespace gala {
namespace {

struct Condition {
  const char* group;
  const char* row;
};
constexpr Condition kConditions[] = {{"Partitioning", "Single block"},
                                     {"Partitioning", "Single layer"},
                                     {"Partitioning", "Multiple layers"},
                                     {"Window Size", "5"},
                                     {"Window Size", "20"},
                                     {"Window Size", "∞"},
                                     {"Threshold", "0.5"},
                                     {"Threshold", "0.75"},
                                     {"Threshold", "0.99"},
                                     {"Batch Size = 1", "All Layers"},
                                     {"Batch Size = 1", "GALA"},
                                     {"Continual TTA", "No Reset"},
                                     {"Continual TTA", "With Reset"}};

bool is_continual(const Condition& condition) {
  return std::string_view(condition.group) == "Continual TTA";
}

PoolQuery query_of(const Condition& condition) {
  return {std::nullopt, std::nullopt, plain_name(condition.group), plain_row(condition.row),
          std::nullopt};
}

/// Mean over everything the paper averages, and what of it is there.
Cell condition_cell(const Pool& pool, const Condition& condition, PoolQuery query) {
  Coverage coverage;
  Cell cell = mean_cell(pool.find(query), accuracy_of, 100, &coverage);
  std::set<std::string> backbones = {"ResNet-18", "ResNet-50"}, losses = {"PL", "SHOT"};
  std::set<std::string> sets = domainbed_sets();
  if (is_continual(condition)) {
    sets = {"CIFAR-10-C", "CIFAR-100-C"};
    backbones = {"WRN-28-10", "ResNeXt-29"};
  }
  if (query.backbone) backbones = {*query.backbone};
  if (query.loss) losses = {*query.loss};
  const std::string note = only_note(
      {{coverage.datasets, sets}, {coverage.backbones, backbones}, {coverage.losses, losses}});
  make_partial(cell, is_continual(condition) ? note : with_environments(note, coverage));
  explain_missing(cell, pool, query);
  return cell;
}

/// Conditions down, one block a setting; `cells` fills a row.
template <class Fill>
void add_conditions(Table& table, bool with_continual, bool with_others, Fill fill) {
  std::vector<int> block;
  std::string setting;
  for (const Condition& condition : kConditions) {
    if (is_continual(condition) ? !with_continual : !with_others) continue;
    Row row{{condition.group, condition.row}, {}, setting != condition.group};
    if (row.border)
      block.push_back(block.empty() ? 0 : block.back() + 1);
    else
      block.push_back(block.back());
    row.method = condition.row;
    setting = condition.group;
    fill(condition, row);
    table.rows.push_back(std::move(row));
  }
  mark_best(table, block);
}

}  // namespace

Table condition_table(const Pool& pool) {
  Table table;
  table.title = "Table 4: conditions";
  table.caption =
      "Accuracy (%) of GALA under different conditions: means over DomainBed, both backbones and "
      "both losses; the last two over the continual streams.";
  table.heads = {"Setting", "Condition"};
  table.of_paper = true;
  table.columns = {{.name = "Accuracy"}};
  add_conditions(table, true, true, [&](const Condition& condition, Row& row) {
    Cell cell = condition_cell(pool, condition, query_of(condition));
    add_paper(cell, find_published("table4", "", "", condition.group, condition.row, "Accuracy"));
    row.cells.push_back(std::move(cell));
  });
  return table;
}

Table condition_detail_table(const Pool& pool) {
  Table table;
  table.title = "Supplement: conditions by backbone and loss";
  table.caption = "Accuracy (%) of GALA under different conditions on DomainBed.";
  table.heads = {"Setting", "Condition"};
  table.of_paper = true;
  for (const char* backbone : {"ResNet-18", "ResNet-50"}) {
    for (const char* loss : {"PL", "SHOT"})
      table.columns.push_back({.name = loss, .over = backbone});
  }
  add_conditions(table, false, true, [&](const Condition& condition, Row& row) {
    for (const Column& column : table.columns) {
      PoolQuery query = query_of(condition);
      query.backbone = column.over;
      query.loss = column.name;
      Cell cell = condition_cell(pool, condition, query);
      add_paper(cell, find_published("supplement1", column.over, column.name, condition.group,
                                     condition.row, "Accuracy"));
      row.cells.push_back(std::move(cell));
    }
  });
  return table;
}

Table reset_table(const Pool& pool) {
  Table table;
  table.title = "Supplement: reset on continual streams";
  table.caption =
      "Accuracy (%) of GALA without (infinite window) and with its reset, over all corruptions.";
  table.heads = {"Setting", "Condition"};
  table.of_paper = true;
  for (const ContinualSet& set : kContinualSets) {
    for (const char* loss : {"PL", "SHOT"}) {
      table.columns.push_back({.name = loss, .over = set.dataset});
    }
  }
  add_conditions(table, true, false, [&](const Condition& condition, Row& row) {
    for (const ContinualSet& set : kContinualSets) {
      for (const char* loss : {"PL", "SHOT"}) {
        PoolQuery query = query_of(condition);
        query.loss = loss;
        Cell cell = continual_cell(pool, set, query, false);
        add_paper(cell, find_published("supplement2", set.backbone, loss, condition.group,
                                       condition.row, set.dataset));
        row.cells.push_back(std::move(cell));
      }
    }
  });
  return table;
}

}  // namespace gala
