#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gala/report/table_parts.h"

namespace gala {
namespace {

/// Rows that are compared with each other: one stream under one network.
struct Board {
  std::string group, dataset, backbone;
  std::vector<std::string> methods = {};  ///< as labelled, in store order
  bool operator==(const Board& other) const {
    return group == other.group && dataset == other.dataset && backbone == other.backbone;
  }
};

std::vector<Board> boards_of(const Pool& pool) {
  std::vector<Board> boards;
  for (const PoolRun& run : pool.candidates()) {
    const Labels& labels = *run.labels;
    const Board place{labels.group, labels.dataset, labels.backbone};
    auto board = std::find(boards.begin(), boards.end(), place);
    if (board == boards.end()) board = boards.insert(boards.end(), place);
    const bool there =
        std::any_of(board->methods.begin(), board->methods.end(),
                    [&](const std::string& known) { return plain_row(known) == run.row; });
    if (!there) board->methods.push_back(labels.row);
  }
  // A group stands together, whenever its runs were made.
  std::map<std::string, std::size_t> groups;
  for (const Board& board : boards) groups.try_emplace(board.group, groups.size());
  std::stable_sort(boards.begin(), boards.end(), [&](const Board& a, const Board& b) {
    return groups[a.group] < groups[b.group];
  });
  return boards;
}

template <class Get>
bool several(const std::vector<Board>& boards, Get get) {
  return std::any_of(boards.begin(), boards.end(),
                     [&](const Board& board) { return get(board) != get(boards.front()); });
}

/// What a column shows, and how it is marked.
struct Measure {
  Column column;
  Metric metric;
  double scale = 1;
  bool idle_competes = false;  ///< doing nothing is a rival, not the measure of what others cost
  bool of_machine = false;     ///< depends on what the run was made with
};

std::optional<double> last_visit(const PoolRun& run) {
  const std::vector<double> errors = visit_errors(*run.record);
  return errors.empty() ? std::nullopt : std::optional(errors.back());
}

std::optional<double> memory_of(const PoolRun& run) {
  const std::int64_t bytes = run.record->cost.peak_memory;
  return bytes > 0 ? std::optional(static_cast<double>(bytes)) : std::nullopt;
}

/// So many that the smallest number has two that count.
int digits_for(const Pool& pool, const Metric& metric) {
  double least = INFINITY;
  for (const PoolRun& run : pool.runs()) {
    const std::optional<double> value = metric(run);
    if (value && *value > 0) least = std::min(least, *value);
  }
  if (!std::isfinite(least)) return 2;
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(least))), 1, 5);
}

std::vector<Measure> measures_of(const Pool& pool, bool errors) {
  const auto any = [&](auto has) {
    return std::any_of(pool.runs().begin(), pool.runs().end(), has);
  };
  std::vector<Measure> measures;
  measures.push_back(
      {{.name = errors ? "Error" : "Accuracy", .higher_is_better = !errors}, nullptr, 100, true});
  measures.back().metric = errors ? error_of : accuracy_of;
  if (any([](const PoolRun& run) { return !visit_errors(*run.record).empty(); })) {
    measures.push_back({{.name = "Last visit", .higher_is_better = false}, last_visit, 100, true});
  }
  measures.push_back({{.name = "Forget.", .higher_is_better = false},
                      [](const PoolRun& run) { return run.record->forgetting(); },
                      100});
  if (any([](const PoolRun& run) {
        return run.record->source && !run.record->source->before_in_norm.empty();
      })) {
    measures.push_back({{.name = "Forget., same norm", .higher_is_better = false},
                        [](const PoolRun& run) { return run.record->forgetting_in_norm(); },
                        100});
  }
  const Metric time = [](const PoolRun& run) { return ms_per_image(*run.record); };
  measures.push_back({{.name = kTimeColumn,
                       .higher_is_better = false,
                       .digits = digits_for(pool, time),
                       .unit = "ms"},
                      time,
                      1,
                      false,
                      true});
  constexpr double kGigabyte = 1e9;
  measures.push_back({{.name = "Memory, GB", .higher_is_better = false, .unit = "GB"},
                      memory_of,
                      1 / kGigabyte,
                      false,
                      true});
  return measures;
}

/// The rows of a board, the best first.
std::vector<Row> rows_of(const Pool& pool, const Board& board,
                         const std::vector<Measure>& measures) {
  std::vector<Row> rows;
  const std::set<std::int64_t> trials = pool.trials(
      {.backbone = board.backbone, .group = plain_name(board.group), .dataset = board.dataset});
  for (const std::string& method : board.methods) {
    const PoolQuery query{.backbone = board.backbone,
                          .group = plain_name(board.group),
                          .row = plain_row(method),
                          .dataset = board.dataset};
    const std::vector<const PoolRun*> runs = pool.find(query);
    Row row{{method}, {}};
    row.method = method;
    if (!runs.empty()) row.loss = runs.front()->loss;
    for (const Measure& measure : measures) {
      Cell& cell = row.cells.emplace_back(mean_cell(runs, measure.metric, measure.scale));
      if (measure.of_machine) {
        cell.deviation.reset();
        cell.interval.reset();
      }
      if (&measure == &measures.front()) {
        note_trials(cell, trials);
        explain_missing(cell, pool, query);
      }
    }
    rows.push_back(std::move(row));
  }
  const double sign = measures.front().column.higher_is_better ? -1 : 1;
  const auto rank = [&](const Row& row) {
    const Cell& cell = row.cells.front();
    return cell.has_value() && std::isfinite(cell.value) ? sign * cell.value : INFINITY;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return rank(a) < rank(b); });
  return rows;
}

/// Marks the best of the rows from `begin`; returns whether one was left out for want of trials.
bool mark_board(Table& table, std::size_t begin, const std::vector<Measure>& measures,
                IdleRivals& idle) {
  bool fewer_trials = false;
  std::set<std::string> machines;
  for (std::size_t r = begin; r < table.rows.size(); ++r) {
    for (const Record* run : table.rows[r].cells.front().runs) machines.insert(made_with(*run));
  }
  for (std::size_t c = 0; c < measures.size(); ++c) {
    if (measures[c].of_machine && machines.size() > 1) continue;
    std::vector<std::size_t> rivals;
    for (std::size_t r = begin; r < table.rows.size(); ++r) {
      if (measures[c].idle_competes || !table.rows[r].loss.empty()) rivals.push_back(r);
    }
    if (measures[c].idle_competes) idle.see(table, c, rivals);
    fewer_trials = mark_column(table, c, rivals, /*across_losses=*/true) || fewer_trials;
  }
  return fewer_trials;
}

std::string caption_of(const std::vector<Measure>& measures, const IdleRivals& idle) {
  const auto has = [&](const char* name) {
    return std::any_of(measures.begin(), measures.end(),
                       [&](const Measure& measure) { return measure.column.name == name; });
  };
  return fmt::format(
      "Methods by their {} while they adapt (%){}, the best first, each with settings of its own; "
      "drop on "
      "the source after adaptation (%){}; time to answer an image, steps included; the most memory "
      "held. ± is the "
      "sample standard deviation over trials. Bold is the best: of all{}, and in forgetting, time "
      "and memory of those that adapt.",
      has("Error") ? "error" : "accuracy", has("Last visit") ? ", and at the last visit" : "",
      has("Forget., same norm") ? ", from the source model with its own statistics and from that "
                                  "in the norm mode of the run"
                                : "",
      idle.words());
}

/// What times and memory rest on.
void add_machines(const Pool& pool, Table& table) {
  std::set<std::string> machines;
  bool process = false;
  for (const PoolRun& run : pool.runs()) {
    machines.insert(made_with(*run.record));
    process = process || run.record->cost.memory_of == "process";
  }
  machines.erase("");
  if (machines.empty()) return;
  table.notes.push_back(
      fmt::format("Time and memory with: {}.{}", fmt::join(machines, "; "),
                  machines.size() == 1 ? "" : " Those of different machines do not compare."));
  if (process) {
    table.notes.emplace_back(
        "Memory of runs without a GPU is that of the whole process, earlier runs included.");
  }
}

}  // namespace

bool compares_methods(const Pool& pool) {
  constexpr std::size_t kFewest = 3;
  const auto losses = losses_by_method(pool);
  std::set<std::string> all;
  for (const auto& [method, own] : losses) all.insert(own.begin(), own.end());
  return losses.size() >= kFewest && all.size() > 1 &&
         std::all_of(losses.begin(), losses.end(),
                     [](const auto& method) { return method.second.size() == 1; });
}

Table method_table(const Pool& pool, const std::string& plan) {
  Table table;
  table.title = "Plan " + plan;
  table.of_methods = true;
  const std::vector<Board> boards = boards_of(pool);
  using Part = std::pair<const char*, std::string Board::*>;
  std::vector<Part> parts;
  for (const auto& [name, member] : {Part{"Group", &Board::group}, Part{"Data", &Board::dataset},
                                     Part{"Network", &Board::backbone}}) {
    if (several(boards, [&, member = member](const Board& board) { return board.*member; })) {
      parts.emplace_back(name, member);
      table.heads.emplace_back(name);
    }
  }
  table.heads.emplace_back("Method");
  const bool errors =
      std::all_of(pool.candidates().begin(), pool.candidates().end(),
                  [](const PoolRun& run) { return run.labels->benchmark == "continual"; });
  const std::vector<Measure> measures = measures_of(pool, errors);
  for (const Measure& measure : measures) table.columns.push_back(measure.column);
  bool fewer_trials = false;
  IdleRivals idle;
  for (const Board& board : boards) {
    std::vector<std::string> heads;
    for (const auto& [name, member] : parts) {
      heads.push_back((board.*member).empty() ? "–" : board.*member);
    }
    const std::size_t begin = table.rows.size();
    for (Row& row : rows_of(pool, board, measures)) {
      row.heads.insert(row.heads.begin(), heads.begin(), heads.end());
      row.group = fmt::format("{}", fmt::join(heads, ", "));
      row.border = table.rows.size() == begin;
      table.rows.push_back(std::move(row));
    }
    fewer_trials = mark_board(table, begin, measures, idle) || fewer_trials;
  }
  table.caption = caption_of(measures, idle);
  if (boards.size() == 1) table.sorted_by = 0;
  if (fewer_trials) table.notes.emplace_back(kFewerTrials);
  add_machines(pool, table);
  return table;
}

}  // namespace gala
