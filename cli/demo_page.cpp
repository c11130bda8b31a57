#include "cli/demo_page.h"

#include <fmt/format.h>

#include <numeric>

namespace gala {
namespace {

/// A copy as a run of its own, with what its trace tells.
AdaptTrace run_of(const DemoCopy& copy, const std::string& loss) {
  AdaptTrace trace;
  if (!copy.trace.empty()) trace = read_adapt_trace(copy.trace);
  Record& run = trace.run;
  run.key = copy.name;
  run.labels = {.plan = "demo",
                .group = "",
                .row = copy.label,
                .benchmark = "continual",
                .dataset = "CIFAR-10, corrupted",
                .backbone = "WRN-16-2",
                .environment = "",
                .trial = 0,
                .loss = copy.trace.empty() ? "" : loss,
                .hyper = {}};
  run.spec.loss = loss;
  run.spec.select = copy.select;
  run.spec.norm = copy.norm;
  run.spec.precision = "float32";
  run.spec.batch_size = copy.images.empty() ? 0 : copy.images.front();
  run.domains = copy.domains;
  run.over_time = {copy.images, copy.correct, {}};
  std::int64_t batch = 0;
  std::size_t next = 0;
  for (const Score& domain : copy.domains) {
    run.over_time.borders.emplace_back(batch, domain.name);
    for (std::int64_t images = 0; images < domain.images && next < copy.images.size(); ++next) {
      images += copy.images[next];
      ++batch;
    }
  }
  return trace;
}

double error(const DemoCopy& copy) {
  std::int64_t images = 0, correct = 0;
  for (const Score& domain : copy.domains) {
    images += domain.images;
    correct += domain.correct;
  }
  return 100 * (1 - static_cast<double>(correct) / static_cast<double>(images));
}

}  // namespace

Table demo_table(const std::vector<DemoCopy>& copies) {
  Table table;
  table.id = "demo";
  table.title = "Error in %";
  table.caption =
      "Errors of the four copies on the same images, answered as they came and never seen twice. "
      "The best of a column is in bold.";
  table.heads = {"error in %"};
  for (const Score& domain : copies.front().domains) {
    table.columns.push_back({.name = domain.name, .higher_is_better = false, .digits = 1});
  }
  table.columns.push_back({.name = "all", .higher_is_better = false, .digits = 1});
  table.columns.push_back({.name = "ms/batch", .digits = 0, .unit = "ms", .directed = false});
  for (const DemoCopy& copy : copies) {
    Row row{{copy.label}, {}, false};
    row.method = copy.label;
    const auto add = [&](double value) {
      row.cells.push_back({.state = Cell::State::kValue, .value = value});
    };
    for (const Score& domain : copy.domains) add(100 * (1 - domain.accuracy()));
    add(error(copy));
    add(copy.batch_ms);
    table.rows.push_back(std::move(row));
  }
  mark_best(table, std::vector<int>(table.rows.size(), 0));
  for (Row& row : table.rows) row.cells.back().best = row.cells.back().second = false;
  return table;
}

std::string demo_page(const std::vector<DemoCopy>& copies, const std::string& loss,
                      const std::string& verdict) {
  std::vector<AdaptTrace> traces;
  for (const DemoCopy& copy : copies) traces.push_back(run_of(copy, loss));
  std::vector<Record> records;
  for (const AdaptTrace& trace : traces) records.push_back(trace.run);
  PageContent content{
      .title = "A network meets noise, blur, snow, fog and compression",
      .lead =
          "Four copies of one small network, trained on clean photographs, "
          "answered the same images side by side. No labels were used to adapt.",
      .facts = {{"Images",
                 fmt::format("{}", std::accumulate(copies[0].images.begin(), copies[0].images.end(),
                                                   std::int64_t{0}))},
                {"Loss", loss}},
      .verdicts = {{"What the numbers say", Verdict::Kind::kOpen, "", verdict}},
      .tables = {},
      .figures = {},
      .records = &records,
      .cosines = {},
      .with_summary = false,
      .notes = {}};
  Table table = demo_table(copies);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    for (Cell& cell : table.rows[i].cells) cell.runs = {&records[i]};
  }
  content.tables = {{"demo", {table}}};
  Chart time{.name_of_template = "time", .wide = true};
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    labels.push_back(copies[i].label);
    time.runs.push_back({copies[i].label, i});
    content.cosines[copies[i].name] = traces[i].cosines;
  }
  time.colours = {{"domain", labels}, {"range", {"#7f8892", "#4aa3d8", "#d9542b", "#0f8a80"}}};
  content.figures.push_back({"stream",
                             "Error over the stream",
                             "All four copies; dashed lines are the borders between corruptions.",
                             {time}});
  for (Figure& figure : trace_figures(traces)) {
    if (figure.id == "time") continue;
    std::erase_if(figure.charts, [&](const Chart& chart) {
      return (!chart.runs.empty() && copies[chart.runs.front().run].trace.empty()) ||
             (chart.runs.empty() && chart.spec["data"]["values"].empty());
    });
    content.figures.push_back(std::move(figure));
  }
  return make_page(content);
}

}  // namespace gala
