#include "gala/report/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gala/report/published.h"

namespace gala {
namespace {

/// One column of a table for one backbone: the rows that a verdict compares.
struct Benchmark {
  std::string name;
  const Table* table = nullptr;
  std::size_t column = 0;
  const Row* source = nullptr;
  std::map<std::string, std::map<std::string, const Row*>> losses;  ///< loss, plain method
  std::vector<const Row*> idle;  ///< further rows in which nothing adapts
};

bool has_number(const Row* row, std::size_t column) {
  return row && row->cells[column].has_value() && std::isfinite(row->cells[column].value);
}

/// Splits a table of methods at its source rows, one a backbone.
std::vector<Benchmark> benchmarks_of(const Table& table) {
  std::vector<Benchmark> found;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].name == "Mean") continue;
    const std::size_t before = found.size();
    for (const Row& row : table.rows) {
      const bool source = row.loss.empty() && plain_row(row.method) == "erm";
      if (source) {
        const bool by_backbone = table.heads.front() == "Backbone";
        found.push_back({by_backbone ? fmt::format("{}, {}", table.columns[c].name, row.heads[0])
                                     : table.columns[c].name,
                         &table,
                         c,
                         &row,
                         {},
                         {}});
      } else if (found.size() > before) {
        if (row.loss.empty())
          found.back().idle.push_back(&row);
        else
          found.back().losses[row.loss][plain_row(row.method)] = &row;
      }
    }
  }
  std::erase_if(found, [](const Benchmark& benchmark) {
    return std::none_of(benchmark.losses.begin(), benchmark.losses.end(), [&](const auto& loss) {
      const auto gala = loss.second.find("gala");
      return gala != loss.second.end() && has_number(gala->second, benchmark.column);
    });
  });
  return found;
}

std::string number(const Row* row, std::size_t column) {
  return has_number(row, column) ? fmt::format("{:.1f}\u00a0%", row->cells[column].value)
                                 : std::string("not run");
}

/// With what it is over, unless `known` says that already: "81.1 % (trial 12 only)".
std::string noted_number(const Row* row, std::size_t column, const std::string& known) {
  const std::string text = number(row, column);
  if (!has_number(row, column)) return text;
  const std::string& note = row->cells[column].note;
  return note.empty() || note == known ? text : fmt::format("{} ({})", text, note);
}

/// Whether ours and the paper's lie on the same side; nothing where one is missing, or ours are means
/// over different things.
std::optional<bool> same_side(const Row* gala, const Row* other, std::size_t column) {
  if (!has_number(gala, column) || !has_number(other, column)) return std::nullopt;
  const Cell &a = gala->cells[column], &b = other->cells[column];
  if (!a.paper || !b.paper || a.note != b.note) return std::nullopt;
  return (a.value > b.value) == (*a.paper > *b.paper);
}

Verdict judge(const Benchmark& benchmark) {
  const std::size_t column = benchmark.column;
  const bool errors = !benchmark.table->columns[column].higher_is_better;
  std::vector<std::string> parts;
  int same = 0, compared = 0;
  std::string partial;
  for (const auto& [loss, rows] : benchmark.losses) {
    const auto find = [&rows = rows](const char* name) -> const Row* {
      const auto found = rows.find(name);
      return found == rows.end() ? nullptr : found->second;
    };
    const Row* gala = find("gala");
    if (!has_number(gala, column)) continue;
    const Row* all = find("alllayers");
    const std::string& known = gala->cells[column].note;
    if (gala->cells[column].state == Cell::State::kPartial) partial = known;
    for (const Row* other : {benchmark.source, all}) {
      if (const auto side = same_side(gala, other, column)) {
        ++compared;
        same += *side;
      }
    }
    std::string part = fmt::format("with {} GALA has {} {}, the source model {}, all layers {}",
                                   loss, number(gala, column), errors ? "error" : "accuracy",
                                   noted_number(benchmark.source, column, known),
                                   noted_number(all, column, known));
    if (const Row* random = find("randomlayer"); has_number(random, column)) {
      part += fmt::format(", a random layer {}", noted_number(random, column, known));
    }
    parts.push_back(std::move(part));
  }
  for (const Row* row : benchmark.idle) {
    if (has_number(row, column)) {
      parts.push_back(fmt::format("without any update, {} gives {}", row->method,
                                  noted_number(row, column, partial)));
    }
  }
  Verdict verdict{benchmark.name, Verdict::Kind::kOpen, "",
                  fmt::format("{}.", fmt::join(parts, "; "))};
  verdict.sentence[0] =
      static_cast<char>(std::toupper(static_cast<unsigned char>(verdict.sentence[0])));
  if (compared == 0) {
    verdict.mark = "nothing of the paper's to compare";
  } else if (same == compared) {
    verdict.kind = Verdict::Kind::kAgrees;
    verdict.mark = "same order as in the paper";
  } else {
    verdict.kind = Verdict::Kind::kDiffers;
    verdict.mark = fmt::format("{} of {} comparisons as in the paper", same, compared);
  }
  if (!partial.empty()) verdict.mark += fmt::format(" ({})", partial);
  return verdict;
}

Verdict judge_study(const Table& table) {
  Verdict verdict{"Tiny-DomainBed, blocks", Verdict::Kind::kOpen, "", ""};
  std::map<std::string, const Row*> rows;
  for (const Row& row : table.rows) rows[plain_name(row.method)] = &row;
  const Row *gala = rows["gala"], *best = rows["bestblockoracle"], *random = rows["randomblock"];
  verdict.sentence = fmt::format(
      "GALA by blocks has {} accuracy, the best single block {}, a random block {}, all blocks {}",
      number(gala, 0), number(best, 0), number(random, 0), number(rows["allblocks"], 0));
  verdict.sentence += gala->cells[3].has_value()
                          ? fmt::format(
                                "; the rank correlation of its choices with the oracle is "
                                "{:.2f}.",
                                gala->cells[3].value)
                          : std::string(".");
  const std::optional<bool> side = same_side(gala, random, 0);
  if (side) {
    verdict.kind = *side ? Verdict::Kind::kAgrees : Verdict::Kind::kDiffers;
    verdict.mark = *side ? "same order as in the paper" : "not as in the paper";
  }
  if (gala->cells[0].state == Cell::State::kPartial) {
    verdict.mark += fmt::format("{}({})", verdict.mark.empty() ? "" : " ", gala->cells[0].note);
  }
  return verdict;
}

const Table* first_variant(const std::vector<TableSet>& tables, const std::string& id) {
  for (const TableSet& set : tables) {
    if (set.id == id) return &set.variants.front();
  }
  return nullptr;
}

/// "3.41 million"; smaller numbers in full: "84,000".
std::string count_text(std::int64_t count) {
  if (count >= 1'000'000) return fmt::format("{:.2f} million", static_cast<double>(count) / 1e6);
  return count < 1000 ? fmt::format("{}", count)
                      : fmt::format("{},{:03}", count / 1000, count % 1000);
}

std::string time_text(double hours) {
  return hours < 1 ? fmt::format("{:.0f} min", std::ceil(60 * hours))
                   : fmt::format("{:.1f} h", hours);
}

}  // namespace

std::vector<Verdict> make_verdicts(const std::vector<TableSet>& tables) {
  std::vector<Verdict> verdicts;
  for (const char* id : {"table2", "table1"}) {
    const Table* table = first_variant(tables, id);
    if (!table) continue;
    const std::vector<Benchmark> benchmarks = benchmarks_of(*table);
    for (const Benchmark& benchmark : benchmarks) verdicts.push_back(judge(benchmark));
    std::vector<std::string> missing;
    for (std::size_t c = 0; c < table->columns.size(); ++c) {
      const bool run = std::any_of(benchmarks.begin(), benchmarks.end(),
                                   [&](const Benchmark& one) { return one.column == c; });
      if (!run && table->columns[c].name != "Mean") missing.push_back(table->columns[c].name);
    }
    if (!missing.empty()) {
      verdicts.push_back({fmt::format("{}", fmt::join(missing, ", ")), Verdict::Kind::kNotRun, "",
                          "Not run: no record of GALA as in the paper's table."});
    }
  }
  if (const Table* study = first_variant(tables, "table3")) {
    if (study->measured() > 0)
      verdicts.push_back(judge_study(*study));
    else
      verdicts.push_back({"Tiny-DomainBed, blocks", Verdict::Kind::kNotRun, "", "Not run."});
  }
  return verdicts;
}

namespace {

/// What a column of the summary shows: a plain row of a table.
struct SummaryColumn {
  const char *name, *row;
  bool adapts;
};
constexpr SummaryColumn kSummaryColumns[] = {
    {"Source model", "erm", false},   {"Batch statistics", "batchstatistics", false},
    {"GALA", "gala", true},           {"Random layer", "randomlayer", true},
    {"AutoRGN", "autorgn", true},     {"AutoSNR", "autosnr", true},
    {"All layers", "alllayers", true}};
constexpr std::size_t kGalaColumn = 2;

const Row* find_row(const Benchmark& benchmark, const std::string& loss,
                    const SummaryColumn& column) {
  if (column.adapts) {
    const auto& rows = benchmark.losses.at(loss);
    const auto found = rows.find(column.row);
    return found == rows.end() ? nullptr : found->second;
  }
  if (plain_row(benchmark.source->method) == column.row) return benchmark.source;
  for (const Row* row : benchmark.idle) {
    if (plain_row(row->method) == column.row) return row;
  }
  return nullptr;
}

/// The cells of one line, the best of those that may be compared marked.
std::vector<Cell> summary_cells(const Benchmark& benchmark, const std::string& loss) {
  std::vector<Cell> cells;
  for (const SummaryColumn& column : kSummaryColumns) {
    const Row* row = find_row(benchmark, loss, column);
    cells.push_back(row ? row->cells[benchmark.column] : Cell{});
    cells.back().best = cells.back().second = false;
  }
  const bool up = benchmark.table->columns[benchmark.column].higher_is_better;
  std::vector<Cell*> all;
  for (Cell& cell : cells) all.push_back(&cell);
  const std::vector<Cell*> rivals = comparable(all);
  Cell* best = nullptr;
  for (Cell* cell : rivals) {
    if (!best || (up ? cell->value > best->value : cell->value < best->value)) best = cell;
  }
  if (rivals.size() > 1) best->best = true;
  return cells;
}

/// One line a loss, and one a rule where GALA's settings were chosen.
void add_lines(const TableSet& set, Table& summary) {
  for (const char* rule : {"", "training_domain"}) {
    const Table& table = set.variant(rule, "");
    if (table.rule != rule && *rule != 0) continue;
    for (const Benchmark& benchmark : benchmarks_of(table)) {
      bool first = true;
      for (const auto& [loss, rows] : benchmark.losses) {
        const std::string measure =
            table.columns[benchmark.column].higher_is_better ? "accuracy" : "error";
        Row row{{fmt::format("{}: {}", benchmark.name, measure), loss},
                summary_cells(benchmark, loss),
                first};
        first = false;
        const bool chosen = !row.cells[kGalaColumn].hyper.empty();
        if (!chosen && *rule != 0) continue;
        row.heads.push_back(!chosen ? "fixed" : *rule != 0 ? "no target label" : "test labels");
        summary.rows.push_back(std::move(row));
      }
    }
  }
}

}  // namespace

Table summary_table(const std::vector<TableSet>& tables) {
  Table summary;
  summary.id = "summary";
  summary.title = "Summary: ours beside the paper's";
  summary.caption =
      "In %, ± as in the tables below. The best of a line is in bold, doing nothing included. "
      "Settings: fixed before, or chosen from a grid by test labels (the rule per_loss) or without "
      "a target label (training_domain).";
  summary.heads = {"Benchmark", "TTA", "Settings"};
  summary.of_paper = true;
  for (const SummaryColumn& column : kSummaryColumns) {
    summary.columns.push_back({.name = column.name, .directed = false});
  }
  for (const char* id : {"table2", "table1"}) {
    for (const TableSet& set : tables) {
      if (set.id == id) add_lines(set, summary);
    }
  }
  const bool fewer_trials = std::any_of(summary.rows.begin(), summary.rows.end(), [](Row& row) {
    std::vector<Cell*> all;
    for (Cell& cell : row.cells) {
      if (cell.has_value() && std::isfinite(cell.value)) all.push_back(&cell);
    }
    return comparable(all).size() < all.size();
  });
  if (fewer_trials) summary.notes.emplace_back(kFewerTrials);
  // Some have a grid where GALA has none: their numbers have an advantage.
  std::set<std::string> chosen;
  for (const Row& row : summary.rows) {
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      if (row.heads.back() == "fixed" && !row.cells[c].hyper.empty()) {
        const std::string& benchmark = row.heads.front();
        chosen.insert(fmt::format("{} on {}", summary.columns[c].name,
                                  benchmark.substr(0, benchmark.find(": "))));
      }
    }
  }
  if (!chosen.empty()) {
    summary.notes.push_back(fmt::format("Chosen by test labels where the others are fixed: {}.",
                                        fmt::join(chosen, ", ")));
  }
  return summary;
}

std::vector<std::pair<std::string, std::string>> describe_records(
    const std::vector<Record>& records) {
  std::set<std::string> plans, data, networks, devices, commits;
  std::string first, last;
  double hours = 0;
  std::int64_t images = 0;
  constexpr double kHour = 3.6e6;
  constexpr std::size_t kWholeHash = 40, kShortHash = 12;
  for (const Record& record : records) {
    plans.insert(record.labels.plan);
    for (const Labels& labels : record.places) plans.insert(labels.plan);
    data.insert(record.labels.dataset);
    networks.insert(record.labels.backbone);
    const auto text = [&](const char* name) { return provenance_text(record, name); };
    if (!text("device").empty()) devices.insert(text("device"));
    std::string commit = text("commit");
    if (commit.size() == kWholeHash) commit.resize(kShortHash);
    if (!commit.empty()) commits.insert(commit);
    const std::string date = text("date").substr(0, 10);
    if (!date.empty() && (first.empty() || date < first)) first = date;
    if (date > last) last = date;
    if (std::isfinite(record.cost.total)) hours += record.cost.total / kHour;
    for (const Score& score : record.domains) images += score.images;
  }
  const auto list = [](const std::set<std::string>& names) {
    constexpr std::size_t kNamed = 6;
    return names.size() <= kNamed ? fmt::format("{}", fmt::join(names, ", "))
                                  : fmt::format("{}", names.size());
  };
  return {{"Runs", fmt::format("{}", records.size())},
          {"Plans", list(plans)},
          {"Data", list(data)},
          {"Networks", list(networks)},
          {"Devices", list(devices)},
          {"Images answered", count_text(images)},
          {"Run time", time_text(hours)},
          {"Made", first == last ? first : first + " to " + last},
          {"Commits", list(commits)}};
}

}  // namespace gala
