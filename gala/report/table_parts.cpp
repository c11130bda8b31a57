#include "gala/report/table_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace gala {
namespace {

constexpr std::size_t kCorruptions = 15;

/// Of one data set, the runs of the paper's backbone; where there are none, of the first other.
std::vector<const PoolRun*> continual_runs(const Pool& pool, const ContinualSet& set,
                                           const PoolQuery& query, std::string& note) {
  PoolQuery wanted = query;
  wanted.dataset = set.dataset;
  wanted.backbone = set.backbone;
  std::vector<const PoolRun*> runs = pool.find(wanted);
  if (!runs.empty()) return runs;
  wanted.backbone.reset();
  runs = pool.find(wanted);
  if (runs.empty()) return runs;
  const std::string backbone = runs.front()->labels->backbone;
  note = backbone;
  std::erase_if(runs, [&](const PoolRun* run) { return run->labels->backbone != backbone; });
  return runs;
}

}  // namespace

const std::set<std::string>& domainbed_sets() {
  static const std::set<std::string> sets = {"PACS", "VLCS", "TerraIncognita", "OfficeHome"};
  return sets;
}

std::optional<double> accuracy_of(const PoolRun& run) {
  return run.record->accuracy();
}
std::optional<double> error_of(const PoolRun& run) {
  return run.record->error();
}

std::string conditions_of(const Record& record) {
  std::string text;
  if (record.spec.precision != "float32") text += ", " + record.spec.precision;
  if (!record.provenance.is_object()) return text;
  const auto jobs = record.provenance.find("jobs");
  if (jobs != record.provenance.end() && jobs->is_number() && *jobs > 1) {
    text += fmt::format(", {} at once", jobs->get<int>());
  }
  return text;
}

std::string made_with(const Record& record) {
  std::string text = provenance_text(record, "gpu");
  if (text.empty() && record.provenance.is_object()) {
    text = provenance_text(record, "cpu");
    const auto threads = record.provenance.find("threads");
    if (threads != record.provenance.end() && threads->is_number()) {
      text += fmt::format(", {} threads", threads->get<int>());
    }
  }
  return text + conditions_of(record);
}

Names with_others(Names first, const Names& found) {
  for (const std::string& name : found) {
    if (std::find(first.begin(), first.end(), name) == first.end()) first.push_back(name);
  }
  return first;
}

Names further_rows(const Pool& pool, const PoolQuery& query, const Names& known) {
  std::set<std::string> seen;
  for (const std::string& row : known) seen.insert(plain_row(row));
  Names rows;
  for (const PoolRun* run : pool.find(query)) {
    if (seen.insert(run->row).second) rows.push_back(run->labels->row);
  }
  return rows;
}

Names losses_of(const Pool& pool) {
  Names losses = {"PL", "SHOT"};
  for (const PoolRun& run : pool.runs()) {
    if (!run.loss.empty()) losses = with_others(losses, {run.loss});
  }
  return losses;
}

std::map<std::string, std::set<std::string>> losses_by_method(const Pool& pool) {
  std::map<std::string, std::set<std::string>> losses;
  for (const PoolRun& run : pool.candidates()) {
    if (!run.loss.empty()) losses[run.row].insert(run.loss);
  }
  return losses;
}

void IdleRivals::see(Table& table, std::size_t column, const std::vector<std::size_t>& rows) {
  std::vector<Cell*> cells;
  for (const std::size_t r : rows) cells.push_back(&table.rows[r].cells[column]);
  const std::vector<Cell*> compared = comparable(cells);
  for (const std::size_t r : rows) {
    const Cell& cell = table.rows[r].cells[column];
    if (!table.rows[r].loss.empty() || !cell.has_value() || !std::isfinite(cell.value)) continue;
    const bool in = std::find(compared.begin(), compared.end(), &cell) != compared.end();
    (in ? compared_ : left_out_) = true;
  }
}

std::string IdleRivals::words() const {
  if (!left_out_) return compared_ ? ", doing nothing included" : "";
  return compared_ ? ", doing nothing included where it has as many trials"
                   : ", doing nothing left out for want of trials";
}

void add_paper(Cell& cell, const std::optional<PublishedNumber>& number) {
  if (!number) return;
  cell.paper = number->value;
  cell.paper_deviation = number->deviation;
}

void make_partial(Cell& cell, const std::string& note) {
  if (note.empty() || cell.state != Cell::State::kValue) return;
  cell.state = Cell::State::kPartial;
  cell.note = note;
}

void explain_missing(Cell& cell, const Pool& pool, const PoolQuery& query) {
  if (cell.state == Cell::State::kNotRun && pool.undecided(query)) {
    cell.note = "runs are there, but the rule cannot choose among them";
  }
}

std::string environments_note(const Coverage& coverage) {
  std::vector<std::string> parts;
  for (const auto& [dataset, environments] : coverage.environments) {
    if (environments.size() >= kEnvironments) continue;
    Names names(environments.begin(), environments.end());
    const std::string last = names.back();
    names.pop_back();
    parts.push_back(fmt::format("{}{}{}{} only",
                                coverage.environments.size() > 1 ? dataset + ": " : "",
                                fmt::join(names, ", "), names.empty() ? "" : " and ", last));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string with_environments(const std::string& note, const Coverage& coverage) {
  const std::string within = environments_note(coverage);
  if (note.empty() || within.empty()) return note + within;
  if (coverage.environments.size() > 1) return note + "; " + within;
  constexpr std::string_view kOnly = " only";
  return note.substr(0, note.size() - kOnly.size()) + ": " + within;
}

void note_trials(Cell& cell, const std::set<std::int64_t>& trials) {
  if (!cell.has_value() || cell.trials == trials) return;
  constexpr std::size_t kNamed = 2;
  const std::size_t count = cell.trials.size();
  const std::string note = count > kNamed
                               ? fmt::format("{} of {} trials", count, trials.size())
                               : fmt::format("{} {} only", count == 1 ? "trial" : "trials",
                                             fmt::join(cell.trials, " and "));
  if (cell.state == Cell::State::kPartial)
    cell.note += "; " + note;
  else
    make_partial(cell, note);
}

Names rows_before_last(const Pool& pool, const PoolQuery& query, Names known) {
  const Names extra = further_rows(pool, query, known);
  known.insert(known.end() - 1, extra.begin(), extra.end());
  return known;
}

Cell continual_cell(const Pool& pool, const ContinualSet& set, const PoolQuery& query,
                    bool as_error) {
  std::string note;
  const std::vector<const PoolRun*> runs = continual_runs(pool, set, query, note);
  Cell cell = mean_cell(runs, as_error ? error_of : accuracy_of, 100);
  if (cell.state == Cell::State::kValue) {
    std::map<std::string, std::vector<double>> corruptions;
    for (const PoolRun* run : runs) {
      for (const Score& score : run->record->domains) {
        const double share = as_error ? 1 - score.accuracy() : score.accuracy();
        corruptions[score.name].push_back(100 * share);
      }
    }
    std::vector<double> samples;
    for (const auto& [name, values] : corruptions) samples.push_back(mean(values));
    set_samples(cell, samples);
    if (note.empty() && samples.size() != kCorruptions) {
      note = fmt::format("{} of {} corruptions", samples.size(), kCorruptions);
    }
  }
  make_partial(cell, note);
  PoolQuery any = query;
  any.dataset = set.dataset;
  explain_missing(cell, pool, any);
  return cell;
}

}  // namespace gala
