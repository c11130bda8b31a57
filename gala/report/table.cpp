#include "gala/report/table.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "gala/base/options.h"
#include "gala/protocol/selection.h"

namespace gala {
namespace {

using Basis =
    std::set<std::tuple<std::string, std::string, std::string, std::string, std::int64_t>>;

/// The networks, losses, targets and trials that a number is the mean of. Across losses they make no
/// difference.
Basis basis_of(const Cell& cell, bool across_losses) {
  Basis basis;
  for (const Labels* labels : cell.places) {
    basis.emplace(labels->backbone, across_losses ? "" : labels->loss, labels->dataset,
                  labels->environment, labels->trial);
  }
  return basis;
}

}  // namespace

std::optional<double> Cell::difference() const {
  if (state != State::kValue || !paper || !std::isfinite(value)) return std::nullopt;
  return value - *paper;
}

std::int64_t Table::measured() const {
  std::int64_t count = 0;
  for (const Row& row : rows) {
    for (const Cell& cell : row.cells) count += cell.has_value();
  }
  return count;
}

std::vector<Cell*> comparable(const std::vector<Cell*>& cells) {
  std::vector<Cell*> with_number;
  std::set<std::int64_t> trials;
  for (Cell* cell : cells) {
    if (!cell->has_value() || !std::isfinite(cell->value)) continue;
    with_number.push_back(cell);
    trials.insert(cell->trials.begin(), cell->trials.end());
  }
  std::erase_if(with_number, [&](const Cell* cell) { return cell->trials != trials; });
  return with_number;
}

bool mark_column(Table& table, std::size_t column, const std::vector<std::size_t>& rows,
                 bool across_losses) {
  const double sign = table.columns[column].higher_is_better ? 1 : -1;
  std::vector<Cell*> all;
  for (const std::size_t r : rows) {
    Cell& cell = table.rows[r].cells[column];
    if (cell.has_value() && std::isfinite(cell.value)) all.push_back(&cell);
  }
  const std::vector<Cell*> cells = comparable(all);
  const bool fewer_trials = cells.size() < all.size();
  std::set<double, std::greater<>> values;
  std::set<Basis> bases;
  for (const Cell* cell : cells) {
    values.insert(sign * cell->value);
    bases.insert(basis_of(*cell, across_losses));
  }
  if (values.size() < 2) return fewer_trials;  // all alike
  if (bases.size() > 1) return fewer_trials;   // of different things
  const double best = *values.begin();
  for (Cell* cell : cells) {
    // What stands in several blocks has a mark that it has in one.
    cell->best = cell->best || sign * cell->value == best;
    const bool second = values.size() > 2 && sign * cell->value == *std::next(values.begin());
    cell->second = (cell->second || second) && !cell->best;
  }
  return fewer_trials;
}

void mark_best(Table& table, const std::vector<int>& block, bool across_losses) {
  std::map<int, std::vector<std::size_t>> blocks;
  for (std::size_t r = 0; r < table.rows.size(); ++r) blocks[block[r]].push_back(r);
  bool fewer_trials = false;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    for (const auto& [number, rows] : blocks) {
      fewer_trials = mark_column(table, c, rows, across_losses) || fewer_trials;
    }
  }
  if (fewer_trials) table.notes.emplace_back(kFewerTrials);
}

std::string value_text(const Cell& cell, const Column& column) {
  switch (cell.state) {
    case Cell::State::kNotRun:
      return "not run";
    case Cell::State::kNotApplicable:
      return "N/A";
    default:
      break;
  }
  if (!std::isfinite(cell.value)) return "NaN";
  return fmt::format("{:.{}f}", cell.value, column.digits);
}

std::string deviation_text(const Cell& cell) {
  return cell.deviation && std::isfinite(*cell.deviation) ? fmt::format("{:.1f}", *cell.deviation)
                                                          : "";
}

std::string rule_words(const std::string& rule) {
  SelectionRule known{};
  return parse_value(rule, known) ? fmt::format("{} ({})", rule_text(known), rule) : rule;
}

std::string difference_text(double difference, int digits) {
  const std::string size = fmt::format("{:.{}f}", std::abs(difference), digits);
  if (size.find_first_not_of("0.") == std::string::npos) return "±" + size;
  return (difference < 0 ? "−" : "+") + size;
}

}  // namespace gala
