#include "gala/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "gala/base/error.h"
#include "gala/base/options.h"
#include "gala/protocol/metrics.h"
#include "gala/protocol/store.h"
#include "gala/report/picture.h"

namespace gala {
namespace {

std::string print(const std::vector<TableSet>& tables, ReportFormat format,
                  const PrintChoice& choice) {
  switch (format) {
    case ReportFormat::kMarkdown:
      return to_markdown(tables, choice);
    case ReportFormat::kLatex:
      return to_latex(tables, choice);
    case ReportFormat::kCsv:
      return to_csv(tables);
    default:
      return to_json(tables).dump(1) + "\n";
  }
}

/// Leaves the tables that were asked for.
void keep_chosen(std::vector<TableSet>& tables, const PrintChoice& choice) {
  for (const std::string& id : choice.tables) {
    std::vector<std::string> known;
    for (const TableSet& set : tables) known.push_back(set.id);
    if (std::find(known.begin(), known.end(), id) == known.end()) {
      known.emplace_back("cost");  // made where it is asked for
      fail<ConfigError>("there is no table {} (there are: {})", id, fmt::join(known, ", "));
    }
  }
  if (choice.tables.empty()) return;
  std::erase_if(tables, [&](const TableSet& set) {
    return std::find(choice.tables.begin(), choice.tables.end(), set.id) == choice.tables.end();
  });
}

/// A norm mode that no table has would leave every table as it is.
void check_norm(const std::vector<TableSet>& tables, const std::string& norm) {
  if (norm.empty()) return;
  std::set<std::string> known;
  for (const TableSet& set : tables) {
    for (const Table& table : set.variants) known.insert(table.norm);
  }
  known.erase("");
  if (!known.contains(norm)) {
    fail<ConfigError>("there is no table of norm mode \"{}\" (there are: {})", norm,
                      fmt::join(known, ", "));
  }
}

/// The cosines of the runs that kept them. A file that is gone or broken is a note, not the end.
std::map<std::string, CosineSummary> read_traces(const Store& store,
                                                 std::vector<std::string>& notes) {
  constexpr std::size_t kMost = 24;  // about 30 KB of the page each
  std::map<std::string, CosineSummary> cosines;
  std::size_t left = 0;
  for (const Record& record : store.records()) {
    if (record.trace.empty()) continue;
    if (cosines.size() == kMost) {
      ++left;
      continue;
    }
    try {
      // Only a name counts: a record must not lead out of its store.
      const auto name = std::filesystem::path(record.trace).filename();
      cosines[record.key] = read_store_trace(store.folder() / "traces" / name);
    } catch (const FormatError& error) {
      notes.emplace_back(error.what());
    }
  }
  if (left > 0)
    notes.push_back(fmt::format("The traces of {} further runs are not in the page.", left));
  return cosines;
}

/// After the tables of results: what GALA's choices look like, where there are any.
void add_rotation(const std::vector<Record>& records, std::vector<TableSet>& tables) {
  Table table = rotation_table(records);
  if (!table.rows.empty()) tables.push_back({table.id, {std::move(table)}});
}

std::string store_page(const Store& store, std::vector<TableSet> tables) {
  const std::vector<Record>& records = store.records();
  PageContent content{.title = "What layer selection does to a network that adapts",
                      .lead =
                          "Test-time adaptation without labels: every number below was measured "
                          "by gala and links to the runs it comes from.",
                      .facts = describe_records(records),
                      .verdicts = make_verdicts(tables),
                      .tables = {},
                      .figures = store_figures(records, tables),
                      .records = &records,
                      .cosines = {},
                      .with_summary = true,
                      .notes = {}};
  content.tables = std::move(tables);
  add_rotation(records, content.tables);
  content.cosines = read_traces(store, content.notes);
  return make_page(content);
}

TableSet comparison(const std::vector<Record>& records, const PrintChoice& choice) {
  SelectionRule rule = SelectionRule::kPerLoss;
  if (!choice.rule.empty()) parse_value(choice.rule, rule);
  Table table =
      comparison_table(records, choice.compare.at(0), choice.compare.at(1), rule, choice.norm);
  // Of the tables that were asked for those that its plans feed.
  std::erase_if(table.rows, [&](const Row& row) {
    const std::string& plan = row.heads.front();
    return !choice.tables.empty() &&
           std::none_of(choice.tables.begin(), choice.tables.end(), [&](const std::string& id) {
             return id == "plan-" + plan || feeds(plan, id);
           });
  });
  if (table.rows.empty()) {
    fail<ConfigError>("--compare: the rows cannot be paired in {}", fmt::join(choice.tables, ", "));
  }
  return {table.id, {std::move(table)}};
}

/// The stream that was asked for, or the first: all methods, and the layers of the one that chooses by
/// its cosines.
Picture store_picture(const std::vector<Record>& records, const std::vector<TableSet>& tables,
                      const std::string& label) {
  const std::vector<Chart> charts = time_figure(records, shown_runs(tables)).charts;
  if (charts.empty()) fail<ConfigError>("no run here has answers over a stream of several domains");
  const auto chart = label.empty()
                         ? charts.begin()
                         : std::find_if(charts.begin(), charts.end(),
                                        [&](const Chart& known) { return known.label == label; });
  if (chart == charts.end()) {
    std::vector<std::string> known;
    for (const Chart& other : charts) known.push_back('"' + other.label + '"');
    fail<ConfigError>("there is no chart \"{}\" (there are: {})", label, fmt::join(known, ", "));
  }
  Picture picture{.title = chart->label};
  for (std::size_t i = 0; i < chart->runs.size(); ++i) {
    const Record& run = records[chart->runs[i].run];
    const std::string& name = chart->runs[i].label;
    // A picture stands alone: the paper's word for the source model would explain nothing.
    picture.lines.push_back(
        {plain_row(name) == "erm" ? "Source model" : name, chart->colours["range"][i], &run});
    if (picture.choices == nullptr && run.steps > 0 && chooses_by_cosine(run)) {
      picture.mover = name;
      picture.choices = &run;
    }
  }
  return picture;
}

Picture trace_picture(const AdaptTrace& trace) {
  return {.title = trace.run.labels.row,
          .lines = {{"error", method_colours({"GALA"})["range"][0], &trace.run}},
          .choices = &trace.run};
}

std::string trace_report(const std::filesystem::path& path, ReportFormat format,
                         const PrintChoice& choice) {
  if (path.filename() == "records.jsonl") {
    fail<ConfigError>("{}: is the file of a store; name its folder", path.string());
  }
  if (!choice.compare.empty() || !choice.tables.empty() || !choice.chart.empty()) {
    fail<ConfigError>("{}: a trace has one table and one picture; a store has more to choose from",
                      path.string());
  }
  const std::vector<AdaptTrace> traces = {read_adapt_trace(path)};
  const AdaptTrace& trace = traces.front();
  if (format == ReportFormat::kSvg) return to_svg(trace_picture(trace));
  const std::vector<TableSet> tables = {{"trace", {trace_table(trace)}}};
  if (format != ReportFormat::kHtml) return print(tables, format, choice);
  const std::vector<Record> records = {trace.run};
  const Record& run = trace.run;
  return make_page(
      {.title = "Adaptation, step by step",
       .lead = fmt::format("The trace {}.", path.filename().string()),
       .facts = {{"Steps", fmt::format("{}", run.steps)},
                 {"Layers", fmt::format("{}", run.layers.size())},
                 {"No layer passed", fmt::format("{}", run.skipped)},
                 {"Refused", fmt::format("{}", run.refused)},
                 {"Repeats in a window", run.rotation ? run.rotation->repeats_text() : "not known"},
                 {"Accuracy", run.domains.empty() ? std::string("not known")
                                                  : fmt::format("{:.2f} %", 100 * run.accuracy())},
                 {"Median step", fmt::format("{:.1f} ms", run.cost.step_median)}},
       .verdicts = {},
       .tables = tables,
       .figures = trace_figures(traces),
       .records = &records,
       .cosines = {{run.key, trace.cosines}},
       .with_summary = false,
       .notes = {}});
}

}  // namespace

Report make_report(const std::filesystem::path& input, ReportFormat format,
                   const PrintChoice& choice) {
  std::error_code ignored;
  if (!std::filesystem::exists(input, ignored)) {
    fail<ConfigError>("{}: there is no such store or trace", input.string());
  }
  if (!std::filesystem::is_directory(input, ignored)) return {trace_report(input, format, choice)};
  const Store store(input, Store::Access::kRead);
  if (!choice.compare.empty()) {
    return {print({comparison(store.records(), choice)}, format, choice), store.repairs()};
  }
  std::vector<TableSet> tables = make_tables(store.records());
  check_norm(tables, choice.norm);
  if (format == ReportFormat::kHtml) {
    return {store_page(store, std::move(tables)), store.repairs()};
  }
  if (format == ReportFormat::kSvg) {
    return {to_svg(store_picture(store.records(), tables, choice.chart)), store.repairs()};
  }
  Table summary = summary_table(tables);
  tables.insert(tables.begin(), {summary.id, {std::move(summary)}});
  add_rotation(store.records(), tables);
  Table cost = cost_table(store.records());
  // Of machines, not of methods: printed where it is asked for.
  if (std::find(choice.tables.begin(), choice.tables.end(), cost.id) != choice.tables.end()) {
    tables.push_back({cost.id, {std::move(cost)}});
  }
  keep_chosen(tables, choice);
  return {print(tables, format, choice), store.repairs()};
}

}  // namespace gala
