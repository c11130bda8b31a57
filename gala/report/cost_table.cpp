#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "gala/report/table_parts.h"

// What the runs of a store took, so that others can reckon what theirs will.

namespace gala {
namespace {

double seconds(const Record& record) {
  return record.cost.total / 1000;
}

/// Runs side by side have a machine's time together.
double side_by_side(const Record& record) {
  if (!record.provenance.is_object()) return 1;
  const auto jobs = record.provenance.find("jobs");
  return jobs != record.provenance.end() && jobs->is_number() && *jobs > 1 ? jobs->get<double>()
                                                                           : 1;
}

Cell number(double value) {
  return {.state = Cell::State::kValue, .value = value};
}

}  // namespace

Table cost_table(const std::vector<Record>& records) {
  Table table;
  table.id = "cost";
  table.title = "What the runs took";
  table.caption =
      "Runs under the plan for which they were made; one that further plans share counts once. "
      "Hours of the machine: "
      "what runs that went side by side took is shared among them. Seconds are those of a run, "
      "with its evaluations. "
      "Training of source models is not in records.";
  table.heads = {"Plan", "Data, network", "Machine"};
  table.columns = {
      {.name = "Runs", .digits = 0, .unit = "", .directed = false},
      {.name = "Images answered, millions", .unit = "", .directed = false},
      {.name = "Hours", .unit = "", .directed = false},
      {.name = "median", .over = "Seconds", .digits = 1, .unit = "", .directed = false},
      {.name = "most", .over = "Seconds", .digits = 1, .unit = "", .directed = false}};
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const Record*>> groups;
  for (const Record& record : records) {
    if (record.cost.total <= 0) continue;
    const Labels& labels = record.labels;
    groups[{labels.plan, fmt::format("{}, {}", labels.dataset, labels.backbone), made_with(record)}]
        .push_back(&record);
  }
  double hours_of_all = 0;
  for (const auto& [place, runs] : groups) {
    double images = 0, hours = 0;
    std::vector<double> each;
    for (const Record* run : runs) {
      images += std::accumulate(run->over_time.images.begin(), run->over_time.images.end(), 0.0);
      hours += seconds(*run) / 3600 / side_by_side(*run);
      each.push_back(seconds(*run));
    }
    hours_of_all += hours;
    std::sort(each.begin(), each.end());
    Row row{{std::get<0>(place), std::get<1>(place), std::get<2>(place)}, {}, false};
    row.method = std::get<0>(place);
    row.cells = {number(static_cast<double>(runs.size())), number(images / 1e6), number(hours),
                 number(quantile(each, 0.5)), number(each.back())};
    row.cells.front().runs = runs;
    table.rows.push_back(std::move(row));
  }
  table.notes = {fmt::format("All of them: {:.2f} hours.", hours_of_all)};
  return table;
}

}  // namespace gala
