#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "gala/report/figures.h"
#include "gala/report/published.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::optional<double> rate_of(const Record& record) {
  const std::optional<double> rate = spec_number(record.spec.optimizer, "rate");
  return rate && *rate > 0 ? rate : std::nullopt;
}

/// What a method is called in a plan where the row is a learning rate.
std::string method_of(const Labels& labels) {
  constexpr std::string_view kPrefix = "learningrate";
  const std::string group = plain_name(labels.group);
  if (!group.starts_with(kPrefix)) return labels.row;
  const std::size_t comma = labels.group.find(", ");
  const std::string method =
      comma == std::string::npos ? labels.group : labels.group.substr(comma + 2);
  if (plain_name(method) == "alllayers") return "All layers";
  return plain_name(method) == "randomlayer" ? "Random layer" : method;
}

/// Values of one line by rate.
struct RatePanel {
  std::vector<std::string> methods;
  std::map<std::string, std::map<double, std::vector<double>>> lines;
  bool errors = false;
};

Json rate_spec(const RatePanel& panel, const std::string& label) {
  Json values = Json::array();
  std::set<double> rates;
  for (const std::string& method : panel.methods) {
    for (const auto& [rate, all] : panel.lines.at(method)) {
      values.push_back({{"rate", rate},
                        {"value", 100 * (panel.errors ? 1 - mean(all) : mean(all))},
                        {"method", method},
                        {"runs", all.size()}});
      rates.insert(rate);
    }
  }
  Json spec = chart_base("By learning rate: " + label, 260);
  spec["data"] = {{"values", values}};
  spec["mark"] = {{"type", "line"}, {"point", true}, {"strokeWidth", 2}};
  spec["encoding"] = {{"x",
                       {{"field", "rate"},
                        {"type", "quantitative"},
                        {"title", "learning rate"},
                        {"scale", {{"type", "log"}, {"nice", false}, {"padding", 12}}},
                        {"axis", {{"format", "~e"}, {"values", rates}, {"grid", false}}}}},
                      {"y",
                       {{"field", "value"},
                        {"type", "quantitative"},
                        {"title", panel.errors ? "error in %" : "accuracy in %"},
                        {"scale", {{"zero", false}}}}},
                      {"color",
                       {{"field", "method"},
                        {"type", "nominal"},
                        {"title", nullptr},
                        {"scale", method_colours(panel.methods)}}},
                      {"tooltip",
                       {{{"field", "method"}},
                        {{"field", "rate"}, {"format", "~e"}},
                        {{"field", "value"}, {"format", ".2f"}},
                        {{"field", "runs"}}}}};
  return spec;
}

}  // namespace

nlohmann::ordered_json method_colours(const std::vector<std::string>& methods) {
  static const std::map<std::string, std::string> known = {{"erm", "#7f8892"},
                                                           {"batchstatistics", "#4aa3d8"},
                                                           {"alllayers", "#d9542b"},
                                                           {"allblocks", "#d9542b"},
                                                           {"autorgn", "#e0992a"},
                                                           {"autosnr", "#b56aa8"},
                                                           {"randomlayer", "#948256"},
                                                           {"randomblock", "#948256"},
                                                           {"randomlayershot", "#948256"},
                                                           {"gala", "#0f8a80"},
                                                           {"galashot", "#0f8a80"},
                                                           {"galapl", "#5fb8ae"},
                                                           {"tent", "#5b6fd0"},
                                                           {"eta", "#a0622d"},
                                                           {"eata", "#c9a227"},
                                                           {"rpl", "#3c8f3c"},
                                                           {"sar", "#c06090"},
                                                           {"deyo", "#e07b91"},
                                                           {"roid", "#8a5fbf"},
                                                           {"cmf", "#b04a4a"},
                                                           {"palm", "#7aa33a"},
                                                           {"law", "#2f9fb0"},
                                                           {"rdumb", "#6a8caf"},
                                                           {"cotta", "#d07fc4"}};
  static const std::vector<std::string> others = {"#5b6fd0", "#a0622d", "#3c8f3c",
                                                  "#c06090", "#6a8caf", "#8a5fbf"};
  Json domain = Json::array(), range = Json::array();
  std::size_t next = 0;
  for (const std::string& method : methods) {
    const auto found = known.find(plain_row(method));
    domain.push_back(method);
    range.push_back(found != known.end() ? found->second : others[next++ % others.size()]);
  }
  return {{"domain", domain}, {"range", range}};
}

Figure rate_figure(const std::vector<Record>& records) {
  Figure figure{"rates",
                "Which learning rates survive?",
                "Runs with one inner step, the mean over targets, trials and other settings, such "
                "as a threshold. A method that needs its rate tuned with labels cannot be switched "
                "on blindly.",
                {}};
  // The same run may serve several plans: it counts once for a method.
  std::vector<std::string> order;
  std::map<std::string, RatePanel> panels;
  std::set<std::tuple<std::string, std::string, const Record*>> seen;
  const auto take = [&](const Record& record, const Labels& labels) {
    const std::optional<double> rate = rate_of(record);
    const bool wanted =
        labels.hyper.contains("rate") || plain_name(labels.group).starts_with("learningrate");
    if (!wanted || !rate || labels.loss.empty() || record.spec.inner_steps != 1 ||
        lone_block(record)) {
      return;
    }
    const std::string label = fmt::format(
        "{}, {}, {}, {} batch {}, {}", labels.dataset, labels.backbone, loss_name(labels.loss),
        record.spec.norm == "source" ? "source statistics," : record.spec.norm + " statistics,",
        record.spec.batch_size, labels.plan);
    const std::string method = method_of(labels);
    if (!std::isfinite(record.accuracy()) || !seen.emplace(label, method, &record).second) return;
    if (!panels.contains(label)) order.push_back(label);
    RatePanel& panel = panels[label];
    panel.errors = labels.benchmark == "continual";
    add_name(panel.methods, method);
    panel.lines[method][*rate].push_back(record.accuracy());
  };
  for (const Record& record : records) {
    take(record, record.labels);
    for (const Labels& labels : record.places) take(record, labels);
  }
  constexpr std::size_t kMost = 8;
  for (const std::string& label : order) {
    RatePanel& panel = panels[label];
    const bool varies = std::any_of(panel.lines.begin(), panel.lines.end(),
                                    [](const auto& line) { return line.second.size() > 1; });
    if (!varies || figure.charts.size() == kMost) continue;
    figure.charts.push_back({.label = label, .spec = rate_spec(panel, label)});
  }
  return figure;
}

namespace {

struct GainPanel {
  std::string group = {};  ///< whose rows these are; empty: the whole table's
  Json values = Json::array();
  std::vector<std::string> methods = {};
};

/// Of a table: points of rows that adapt, against the source model of their group and column. Groups
/// without one, such as those of a sweep, are left out.
std::vector<GainPanel> gain_panels(const Table& table, std::size_t column) {
  const auto numbers = [&](const Row& row) -> std::optional<std::array<double, 3>> {
    std::vector<double> accuracy, forgetting, in_norm;
    for (const Record* record : row.cells[column].runs) {
      accuracy.push_back(100 * record->accuracy());
      if (const auto lost = record->forgetting()) forgetting.push_back(100 * *lost);
      if (const auto lost = record->forgetting_in_norm()) in_norm.push_back(100 * *lost);
    }
    if (accuracy.empty() || forgetting.size() != accuracy.size()) return std::nullopt;
    return std::array{mean(accuracy), mean(forgetting), mean(in_norm)};
  };
  const auto is_source = [](const Row& row) {
    return row.loss.empty() && plain_row(row.method) == "erm";
  };
  std::vector<const Row*> rows;
  for (const Row& row : table.rows) rows.push_back(&row);
  // A table that is sorted by its numbers has the source model anywhere in a group.
  if (table.of_methods) {
    for (auto begin = rows.begin(); begin != rows.end();) {
      const auto end = std::find_if(begin, rows.end(),
                                    [&](const Row* row) { return row->group != (*begin)->group; });
      std::stable_partition(begin, end, [&](const Row* row) { return is_source(*row); });
      begin = end;
    }
  }
  const Row* source = nullptr;
  std::vector<GainPanel> panels;
  for (const Row* each : rows) {
    const Row& row = *each;
    // Table 1 has a source row for each backbone.
    if (is_source(row)) {
      source = &row;
      if (panels.empty() || panels.back().group != row.group) panels.push_back({row.group});
    }
    if (!source || &row == source || row.group != source->group) continue;
    const auto mine = numbers(row);
    if (!mine || source->cells[column].runs.empty()) continue;
    std::vector<double> before;
    for (const Record* record : source->cells[column].runs)
      before.push_back(100 * record->accuracy());
    GainPanel& panel = panels.back();
    panel.values.push_back({{"method", row.method},
                            {"loss", row.loss.empty() ? "none" : row.loss},
                            {"backbone", row.cells[column].runs.front()->labels.backbone},
                            {"gain", (*mine)[0] - mean(before)},
                            {"forgetting", (*mine)[1]},
                            {"same_norm", (*mine)[2]}});
    add_name(panel.methods, row.method);
  }
  return panels;
}

Json gain_spec(const GainPanel& panel, const std::string& label) {
  Json spec = chart_base("Forgetting against gain: " + label, 280);
  spec["data"] = {{"values", panel.values}};
  spec["layer"] = Json::array();
  const Json x = {{"field", "gain"},
                  {"type", "quantitative"},
                  {"title", "gain over the source model, points of accuracy"}};
  const Json y = {
      {"field", "forgetting"}, {"type", "quantitative"}, {"title", "forgetting, points"}};
  const std::vector<std::pair<const char*, const char*>> zeros = {{"x", "gain"},
                                                                  {"y", "forgetting"}};
  for (const auto& [channel, field] : zeros) {
    spec["layer"].push_back(
        {{"data", {{"values", {{{field, 0}}}}}},
         {"mark", {{"type", "rule"}, {"style", "border"}}},
         {"encoding", {{channel, {{"field", field}, {"type", "quantitative"}}}}}});
  }
  spec["layer"].push_back(
      {{"mark", {{"type", "point"}, {"filled", true}, {"size", 90}}},
       {"encoding",
        {{"x", x},
         {"y", y},
         {"color",
          {{"field", "method"},
           {"type", "nominal"},
           {"title", nullptr},
           {"scale", method_colours(panel.methods)}}},
         {"shape",
          {{"field", "loss"},
           {"type", "nominal"},
           {"title", nullptr},
           {"legend", {{"orient", "bottom"}}}}},
         {"tooltip",
          {{{"field", "method"}},
           {{"field", "loss"}},
           {{"field", "backbone"}},
           {{"field", "gain"}, {"format", ".2f"}},
           {{"field", "forgetting"}, {"format", ".2f"}},
           {{"field", "same_norm"}, {"format", ".2f"}, {"title", "forgetting, same norm"}}}}}}});
  return spec;
}

/// The tables whose rows compare methods.
std::vector<const Table*> method_tables(const std::vector<TableSet>& tables) {
  std::vector<const Table*> found;
  for (const TableSet& set : tables) {
    const Table& table = set.variants.front();
    const bool ours = table.id == "table1" || table.id == "table2" || !table.of_paper;
    if (ours && table.measured() > 0) found.push_back(&table);
  }
  return found;
}

}  // namespace

Figure forgetting_figure(const std::vector<TableSet>& tables) {
  Figure figure{
      "forgetting",
      "Forgetting against gain",
      "What adaptation gains on the target, and what it costs on the source. To the right "
      "is better, low is better. Forgetting is counted from the source model with its own "
      "statistics; the pointer shows what is left when both have the statistics of the run.",
      {}};
  constexpr std::size_t kMost = 12;
  for (const Table* table : method_tables(tables)) {
    for (std::size_t c = 0; c < table->columns.size(); ++c) {
      const Column& column = table->columns[c];
      if (column.name == "Mean" || column.name.starts_with("Forget.")) continue;
      if (table->of_methods && c > 0) continue;
      for (const GainPanel& panel : gain_panels(*table, c)) {
        if (panel.values.size() < 2 || figure.charts.size() == kMost) continue;
        std::string label = table->of_methods ? table->title
                            : column.over.empty()
                                ? column.name
                                : fmt::format("{} ({})", column.over, table->title);
        if (!panel.group.empty()) label += ", " + panel.group;
        figure.charts.push_back({.label = label, .spec = gain_spec(panel, label)});
      }
    }
  }
  return figure;
}

}  // namespace gala
