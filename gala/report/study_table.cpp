#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "gala/report/table_parts.h"

namespace gala {
namespace {

/// The six shifts of Tiny-DomainBed, as data set and environment.
const std::set<std::string>& tiny_shifts() {
  static const std::set<std::string> shifts = {"TerraIncognita L100", "TerraIncognita L38",
                                               "TerraIncognita L43",  "PACS cartoon",
                                               "PACS sketch",         "VLCS SUN09"};
  return shifts;
}

/// Without the prefix that DomainBed gives folders of TerraIncognita.
std::string shift_name(const Labels& labels) {
  constexpr std::string_view kPrefix = "location_";
  std::string environment = labels.environment;
  if (environment.starts_with(kPrefix)) {
    environment.replace(0, kPrefix.size(), "L");
  }
  return labels.dataset + " " + environment;
}

/// Runs of one row of the study, one for each shift, trial and loss.
struct Lane {
  std::vector<PoolRun> runs;
  std::vector<std::optional<double>> correlations;  ///< one a run
};

/// The runs of the best or the worst block; their correlation is 1 or -1 by definition.
Lane oracle_lane(const std::vector<Placed>& placed, const std::vector<BlockStudy>& studies,
                 bool best) {
  Lane lane;
  for (const BlockStudy& study : studies) {
    if (study.blocks.size() < 2) continue;
    const Record* record = best ? study.best : study.worst;
    // The labels of the records, which outlive the table; those of the study do not.
    const auto place = std::find_if(placed.begin(), placed.end(), [&](const Placed& run) {
      return run.record == record && same_shift(*run.labels, study.shift);
    });
    lane.runs.push_back({record, place->labels, "", "", loss_name(study.shift.loss)});
    lane.correlations.emplace_back(best ? 1.0 : -1.0);
  }
  return lane;
}

Lane method_lane(const Pool& pool, const std::vector<BlockStudy>& studies, const std::string& row) {
  Lane lane;
  for (const PoolRun* run : pool.find({.row = plain_row(row)})) {
    if (lone_block(*run->record)) continue;
    lane.runs.push_back(*run);
    lane.correlations.push_back(std::nullopt);
    for (const BlockStudy& study : studies) {
      if (same_shift(study.shift, *run->labels)) {
        lane.correlations.back() = rank_correlation(*run->record, study);
      }
    }
  }
  return lane;
}

/// Mean over all shifts, losses and trials, each counting the same, as the paper averages here.
Cell flat_cell(const Lane& lane, const Metric& metric, double scale) {
  Cell cell;
  std::set<std::string> shifts, losses;
  std::vector<double> values;
  for (const PoolRun& run : lane.runs) {
    const std::optional<double> value = metric(run);
    if (!value) continue;
    values.push_back(scale * *value);
    cell.runs.push_back(run.record);
    cell.places.push_back(run.labels);
    shifts.insert(shift_name(*run.labels));
    losses.insert(run.loss);
  }
  if (lane.runs.empty()) return cell;
  if (values.empty()) {
    cell.state = Cell::State::kNotApplicable;
    return cell;
  }
  cell.state = Cell::State::kValue;
  cell.value = mean(values);
  cell.interval = bootstrap_interval(values, 0.95, 2000);
  cell.samples = static_cast<std::int64_t>(values.size());
  std::string note;
  if (values.size() < lane.runs.size()) {
    note = fmt::format("of {} of {} runs", values.size(), lane.runs.size());
  }
  if (shifts != tiny_shifts()) {
    note = fmt::format("{} of {} shifts", shifts.size(), tiny_shifts().size());
  }
  if (losses != std::set<std::string>{"PL", "SHOT"}) {
    note += fmt::format("{}{}", note.empty() ? "" : ", ", fmt::join(losses, " and "));
  }
  make_partial(cell, note);
  return cell;
}

Row study_row(const std::string& name, const Lane& lane, const std::vector<Column>& columns,
              bool ranks_blocks) {
  Row row{{name}, {}, false};
  row.method = name;
  row.cells.push_back(flat_cell(lane, accuracy_of, 100));
  row.cells.push_back(flat_cell(
      lane, [](const PoolRun& run) { return run.record->generalisation(); }, 100));
  row.cells.push_back(flat_cell(
      lane, [](const PoolRun& run) { return run.record->forgetting(); }, 100));
  std::size_t next = 0;
  Cell correlation = flat_cell(
      lane, [&](const PoolRun&) { return lane.correlations[next++]; }, 1);
  // Where every block moves at every step, there is no ranking.
  if (!ranks_blocks && correlation.state != Cell::State::kNotRun) {
    correlation = Cell{.state = Cell::State::kNotApplicable};
  }
  row.cells.push_back(std::move(correlation));
  for (std::size_t c = 0; c < columns.size(); ++c) {
    add_paper(row.cells[c], find_published("table3", "ResNet-18", "", "", name, columns[c].name));
  }
  if (!ranks_blocks) row.cells.back().state = Cell::State::kNotApplicable;
  return row;
}

}  // namespace

Table study_table(const Pool& pool) {
  Table table;
  table.title = "Table 3: Tiny-DomainBed, blocks";
  table.caption =
      "Adaptation accuracy (%), accuracy on the held-out target after adaptation, drop on the "
      "source's hold-outs, and Spearman correlation between how often a block is chosen and how "
      "well it does alone; means over shifts and losses. The oracle rows are chosen with labels.";
  table.heads = {"Method"};
  table.of_paper = true;
  table.columns = {{.name = "TTA Acc.", .digits = 1},
                   {.name = "Gen.", .digits = 1},
                   {.name = "Forget.", .higher_is_better = false, .digits = 1},
                   {.name = "Rank corr.", .digits = 2, .unit = ""}};
  std::vector<Placed> placed;
  for (const PoolRun& run : pool.runs()) {
    if (lone_block(*run.record)) placed.push_back({run.record, run.labels});
  }
  const std::vector<BlockStudy> studies = study_blocks(placed);
  const auto add = [&](const std::string& name, const Lane& lane, bool border, bool ranks) {
    table.rows.push_back(study_row(name, lane, table.columns, ranks));
    table.rows.back().border = border;
  };
  add("All Blocks", method_lane(pool, studies, "All Blocks"), true, false);
  add("Worst Block (oracle)", oracle_lane(placed, studies, false), true, true);
  add("Best Block (oracle)", oracle_lane(placed, studies, true), false, true);
  const Names known = {"All Blocks", "Random Block", "GALA"};
  Names rows = {"Random Block", "GALA"};
  for (const std::string& row : further_rows(pool, {}, known)) {
    const auto runs = pool.find({.row = plain_row(row)});
    const bool adapts = std::any_of(runs.begin(), runs.end(), [](const PoolRun* run) {
      return !lone_block(*run->record) && !run->labels->loss.empty();
    });
    if (adapts) rows.insert(rows.end() - 1, row);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    add(rows[i], method_lane(pool, studies, rows[i]), i == 0, true);
  }
  std::set<std::string> shifts;
  for (const PoolRun& run : pool.runs()) shifts.insert(shift_name(*run.labels));
  if (!shifts.empty() && shifts != tiny_shifts()) {
    table.notes.push_back(fmt::format("Run so far: {}. The paper's numbers are means over {}.",
                                      fmt::join(shifts, ", "), fmt::join(tiny_shifts(), ", ")));
  }
  mark_best(table, std::vector<int>(table.rows.size(), 0));
  return table;
}

}  // namespace gala
