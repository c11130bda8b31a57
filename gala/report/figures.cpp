#include "gala/report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gala/report/published.h"

namespace gala {
namespace {

constexpr std::size_t kMostCharts = 4;

std::size_t index_of(const std::vector<Record>& records, const Record* record) {
  return static_cast<std::size_t>(record - records.data());
}

std::string title_of(const ShownRun& shown) {
  const std::string& environment = shown.record->labels.environment;
  return fmt::format("{}{}{}{}{}", shown.data, environment.empty() ? "" : " ", environment,
                     shown.loss.empty() ? "" : ", ", shown.loss);
}

/// GALA's runs, one for each stream and loss.
std::vector<const ShownRun*> gala_runs(const std::vector<ShownRun>& shown) {
  std::vector<const ShownRun*> runs;
  for (const ShownRun& run : shown) {
    if (!plain_name(run.method).starts_with("gala") || run.record->steps == 0) continue;
    const bool there = std::any_of(runs.begin(), runs.end(), [&](const ShownRun* other) {
      return other->data == run.data && other->loss == run.loss;
    });
    if (!there && runs.size() < kMostCharts) runs.push_back(&run);
  }
  return runs;
}

std::vector<Figure> layer_figures(const std::vector<Record>& records,
                                  const std::vector<ShownRun>& shown) {
  Figure raster{"raster",
                "Which layer moved when",
                "Steps from left to right, layers from input to output. Orange: several layers at "
                "once (the step that opens a window); grey: none passed; red: refused.",
                {}};
  Figure counts{"counts",
                "How often each layer moved",
                "Steps at which GALA moved a layer by its whole update.",
                {}};
  Figure path{
      "displacement",
      "Where the updates lead",
      "Distance of each layer from the source at the end, against the length of its way "
      "there. On the dotted line a layer went straight; far below it, its updates undid each "
      "other.",
      {}};
  for (const ShownRun* run : gala_runs(shown)) {
    const ChartRun one{title_of(*run), index_of(records, run->record)};
    raster.charts.push_back(
        {.label = one.label, .name_of_template = "raster", .runs = {one}, .wide = true});
    counts.charts.push_back({.label = one.label, .name_of_template = "counts", .runs = {one}});
    path.charts.push_back(
        {.label = one.label + ": GALA", .name_of_template = "displacement", .runs = {one}});
    for (const ShownRun& other : shown) {
      if (plain_name(other.method) != "alllayers" || other.data != run->data ||
          other.loss != run->loss || other.table != run->table) {
        continue;
      }
      path.charts.push_back({.label = one.label + ": all layers",
                             .name_of_template = "displacement",
                             .runs = {{one.label, index_of(records, other.record)}}});
      break;
    }
  }
  return {raster, counts, path};
}

Figure gap_figure(const std::vector<Record>& records, const std::vector<ShownRun>& shown) {
  Figure figure{"gap",
                "How clear was the choice?",
                "Largest cosine minus second largest, over the steps that do not open a window. "
                "Where it is tiny, the selection is close to a lottery.",
                {}};
  Chart chart{.label = "GALA", .name_of_template = "gap"};
  std::vector<std::string> names;
  for (const ShownRun* run : gala_runs(shown)) {
    if (run->record->gap.steps == 0) continue;
    names.push_back(title_of(*run));
    chart.runs.push_back({names.back(), index_of(records, run->record)});
  }
  chart.colours = method_colours(names);
  if (!chart.runs.empty()) figure.charts.push_back(std::move(chart));
  return figure;
}

Figure cosine_figure(const std::vector<Record>& records, const std::vector<ShownRun>& shown) {
  Figure figure{"cosines",
                "Cosines and threshold",
                "1 − cos α over the steps: the best layer (line), the median (thin), all layers "
                "(band), and the threshold. Below: the cosine of every layer.",
                {}};
  for (const ShownRun* run : gala_runs(shown)) {
    if (run->record->trace.empty()) continue;
    const ChartRun one{title_of(*run), index_of(records, run->record)};
    Chart lines{.label = one.label, .name_of_template = "cosines", .runs = {one}, .wide = true};
    lines.threshold = spec_number(run->record->spec.select, "threshold");
    if (lines.threshold) lines.threshold_text = fmt::format("threshold {}", *lines.threshold);
    figure.charts.push_back(std::move(lines));
    figure.charts.push_back({.label = one.label + ", every layer",
                             .name_of_template = "cosine_map",
                             .runs = {one},
                             .wide = true});
  }
  return figure;
}

void add_shown(const Table& table, std::vector<ShownRun>& shown) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    if (column.name == "Mean" || column.name.starts_with("Forget.") || column.name == "Gen." ||
        column.name == "Rank corr." || (table.of_methods && c > 0)) {
      continue;
    }
    for (const Row& row : table.rows) {
      if (row.cells[c].runs.empty()) continue;
      const Record* record = row.cells[c].runs.front();
      const Labels& labels = record->labels;
      if (table.of_methods) {
        // Whatever their losses, methods are drawn together.
        shown.push_back(
            {table.id, row.group.empty() ? labels.dataset : labels.dataset + ", " + row.group,
             labels.loss.empty() ? "" : "all methods", row.method, row.method, record, row.group});
      } else {
        shown.push_back({table.id, labels.dataset, loss_name(labels.loss), row.method,
                         row.full_name(), record});
      }
    }
  }
}

}  // namespace

std::vector<ShownRun> shown_runs(const std::vector<TableSet>& tables) {
  std::vector<ShownRun> shown;
  for (const char* id : {"table2", "table1", "table3"}) {
    for (const TableSet& set : tables) {
      if (set.id == id) add_shown(set.variants.front(), shown);
    }
  }
  if (!shown.empty()) return shown;
  for (const TableSet& set : tables) {
    if (!set.variants.front().of_paper) add_shown(set.variants.front(), shown);
  }
  return shown;
}

Figure time_figure(const std::vector<Record>& records, const std::vector<ShownRun>& shown) {
  Figure figure{"time",
                "Error over the stream",
                "Error of the answers while the stream passes, all methods of a loss together; "
                "dashed lines are the borders between domains, or between visits.",
                {}};
  for (const ShownRun& first : shown) {
    if (first.loss.empty() || first.record->over_time.borders.size() < 2) continue;
    const std::string label = title_of(first);
    const bool there = std::any_of(figure.charts.begin(), figure.charts.end(),
                                   [&](const Chart& chart) { return chart.label == label; });
    if (there || figure.charts.size() == kMostCharts) continue;
    Chart chart{.label = label, .name_of_template = "time", .wide = true};
    std::vector<std::string> methods;
    for (const ShownRun& run : shown) {
      if (run.data != first.data || run.table != first.table ||
          (!run.loss.empty() && run.loss != first.loss)) {
        continue;
      }
      methods.push_back(run.name);
      chart.runs.push_back({run.name, index_of(records, run.record)});
    }
    chart.colours = method_colours(methods);
    figure.charts.push_back(std::move(chart));
  }
  return figure;
}

std::vector<Figure> store_figures(const std::vector<Record>& records,
                                  const std::vector<TableSet>& tables) {
  const std::vector<ShownRun> shown = shown_runs(tables);
  std::vector<Figure> figures = {tradeoff_figure(tables),     selector_figure(tables),
                                 visits_figure(tables),       rotation_figure(records),
                                 time_figure(records, shown), block_figure(records),
                                 rate_figure(records),        forgetting_figure(tables)};
  for (Figure& figure : layer_figures(records, shown)) figures.push_back(std::move(figure));
  figures.push_back(cosine_figure(records, shown));
  figures.push_back(gap_figure(records, shown));
  figures.push_back(cost_figure(tables));
  std::erase_if(figures, [](const Figure& figure) { return figure.charts.empty(); });
  figures.push_back(criterion_figure());
  return figures;
}

}  // namespace gala
