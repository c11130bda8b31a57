#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "gala/base/error.h"
#include "gala/report/figures.h"
#include "gala/report/published.h"
#include "gala/select/gala.h"

// What the criterion does, seen from the choices: whether layers come round, or come again.

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

/// The options in which a spec differs from the defaults: "threshold=0.5", or "default".
std::string setting_of(const Record& record) {
  const Spec defaults = options_to_spec("gala", GalaSelector::Options{});
  const auto options =
      parse_options<GalaSelector::Options>(Spec::parse(record.spec.select), Selector::kKind);
  std::vector<std::string> parts;
  for (const auto& [name, value] : options_to_spec("gala", options).options) {
    if (*defaults.find(name) != value) parts.push_back(name + "=" + value);
  }
  return parts.empty() ? "default" : fmt::format("{}", fmt::join(parts, ", "));
}

struct Turn {
  const Record* record;
  Rotation rotation;
  std::string setting;
};

/// Runs that move one layer at a time, each once. Records whose spec is none are left out.
std::vector<Turn> turns(const std::vector<Record>& records) {
  std::vector<Turn> found;
  for (const Record& record : records) {
    const std::optional<Rotation> rotation = rotation_of(record);
    if (!rotation || record.spec.select.empty()) continue;
    try {
      found.push_back({&record, *rotation, setting_of(record)});
    } catch (const ConfigError&) {
    }
  }
  return found;
}

Cell number(double value, const std::vector<const Record*>& runs) {
  return {.state = Cell::State::kValue, .value = value, .runs = runs};
}

double share(double part, const Rotation& whole) {
  return 100 * part / static_cast<double>(whole.choices);
}

}  // namespace

Table rotation_table(const std::vector<Record>& records) {
  Table table;
  table.id = "rotation";
  table.title = "What the criterion does: repeats within a window";
  table.caption =
      "GALA's runs that move one layer at a time, by their settings. Choices are steps at which "
      "one "
      "layer moved; a repeat is a choice of a layer that the same window had chosen before. By "
      "chance: what as many even, independent draws would repeat.";
  table.heads = {"Settings", "Layers"};
  table.columns = {{.name = "Runs", .digits = 0, .unit = "", .directed = false},
                   {.name = "Steps", .digits = 0, .unit = "", .directed = false},
                   {.name = "Skipped", .digits = 0, .unit = "", .directed = false},
                   {.name = "Choices", .digits = 0, .unit = "", .directed = false},
                   {.name = "Repeats", .digits = 0, .unit = "", .directed = false},
                   {.name = "Repeats, %", .digits = 1, .directed = false},
                   {.name = "By chance, %", .digits = 1, .directed = false}};
  struct Sum {
    Rotation rotation;
    std::int64_t steps = 0, skipped = 0;
    std::vector<const Record*> runs;
  };
  // The defaults first, by single modules before the rest.
  std::map<std::tuple<bool, bool, std::string, std::string>, Sum> sums;
  for (const Turn& turn : turns(records)) {
    const std::string layers = format_value(turn.record->spec.partition);
    Sum& sum = sums[{turn.setting != "default", layers != "module", turn.setting, layers}];
    sum.rotation.choices += turn.rotation.choices;
    sum.rotation.repeats += turn.rotation.repeats;
    sum.rotation.by_chance += turn.rotation.by_chance;
    sum.steps += turn.record->steps;
    sum.skipped += turn.record->skipped;
    sum.runs.push_back(turn.record);
  }
  for (const auto& [place, sum] : sums) {
    Row row{{std::get<2>(place), std::get<3>(place)}, {}, false};
    row.method = row.heads.front();
    const auto repeats = static_cast<double>(sum.rotation.repeats);
    for (const double value :
         {static_cast<double>(sum.runs.size()), static_cast<double>(sum.steps),
          static_cast<double>(sum.skipped), static_cast<double>(sum.rotation.choices), repeats,
          share(repeats, sum.rotation), share(sum.rotation.by_chance, sum.rotation)}) {
      // One link to the runs is enough: there may be thousands.
      row.cells.push_back(
          number(value, row.cells.empty() ? sum.runs : std::vector<const Record*>{}));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Figure rotation_figure(const std::vector<Record>& records) {
  Figure figure{"rotation",
                "A choice, or a rotation?",
                "Every run of GALA with its default settings that moves single layers: how many of "
                "its choices repeat a layer within a window. The tick is what even, independent "
                "draws would repeat. At zero no layer moves twice before the window ends: the "
                "criterion then decides the order of the layers, and which are left out.",
                {}};
  // A point stands for all runs of a row that share it: thousands of runs must not fill the page.
  std::map<std::tuple<std::string, std::string, std::string, double>, std::map<double, int>> rows;
  std::map<std::string, Rotation> sums;
  const auto name_of = [](const auto& row) {
    return fmt::format("{}, {}, {}, rate {}", std::get<0>(row), std::get<1>(row), std::get<2>(row),
                       std::get<3>(row));
  };
  for (const Turn& turn : turns(records)) {
    if (turn.setting != "default" || turn.record->spec.partition == Granularity::kBlock) continue;
    const Labels& labels = turn.record->labels;
    const std::tuple row{labels.dataset, labels.backbone, loss_name(labels.loss),
                         spec_number(turn.record->spec.optimizer, "rate").value_or(0)};
    const double repeated = share(static_cast<double>(turn.rotation.repeats), turn.rotation);
    ++rows[row][std::round(10 * repeated) / 10];
    Rotation& sum = sums[name_of(row)];
    sum.choices += turn.rotation.choices;
    sum.by_chance += turn.rotation.by_chance;
  }
  if (rows.empty()) return figure;
  Json values = Json::array(), chances = Json::array(), order = Json::array();
  for (const auto& [row, points] : rows) {
    const std::string name = name_of(row);
    order.push_back(name);
    chances.push_back({{"of", name}, {"share", share(sums[name].by_chance, sums[name])}});
    for (const auto& [repeated, runs] : points) {
      values.push_back({{"of", name}, {"share", repeated}, {"runs", runs}});
    }
  }
  Json spec = chart_base("Share of choices that repeat a layer within a window, by run",
                         static_cast<int>(40 + 22 * rows.size()));
  spec["data"] = {{"values", values}};
  const Json y = {{"field", "of"},
                  {"type", "nominal"},
                  {"title", nullptr},
                  {"sort", order},
                  {"axis", {{"labelLimit", 300}, {"grid", true}}}};
  const Json x = {{"field", "share"},
                  {"type", "quantitative"},
                  {"title", "choices that repeat a layer within the window, %"}};
  spec["layer"] = Json::array();
  spec["layer"].push_back(
      {{"data", {{"values", chances}}},
       {"mark",
        {{"type", "tick"}, {"style", "threshold"}, {"thickness", 2}, {"tooltip", "by chance"}}},
       {"encoding", {{"x", x}, {"y", y}}}});
  spec["layer"].push_back(
      {{"mark", {{"type", "point"}, {"filled", true}, {"opacity", 0.6}, {"color", "#0f8a80"}}},
       {"encoding",
        {{"x", x},
         {"y", y},
         {"size", {{"field", "runs"}, {"type", "quantitative"}, {"scale", {{"range", {40, 160}}}}}},
         {"tooltip",
          {{{"field", "of"}, {"title", "settings"}},
           {{"field", "share"}, {"title", "repeats, %"}},
           {{"field", "runs"}}}}}}});
  figure.charts.push_back(
      {.label = "Runs with default settings", .spec = std::move(spec), .wide = true});
  return figure;
}

}  // namespace gala
