#include <cmath>
#include <set>

#include "gala/report/page.h"
#include "gala/report/printers.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

/// Any JSON with its texts cleaned.
Json cleaned(const nlohmann::json& json) {
  if (json.is_string()) return clean_text(json.get<std::string>());
  if (json.is_object()) {
    Json object = Json::object();
    for (const auto& [name, value] : json.items()) object[clean_text(name)] = cleaned(value);
    return object;
  }
  if (json.is_array()) {
    Json list = Json::array();
    for (const auto& value : json) list.push_back(cleaned(value));
    return list;
  }
  return json;
}

Json scores(const std::vector<Score>& list) {
  Json json = Json::array();
  for (const Score& score : list) {
    json.push_back({clean_text(score.name), score.images, score.correct});
  }
  return json;
}

Json metrics(const Record& record) {
  Json json = Json::object();
  const auto add = [&](const char* name, std::optional<double> value) {
    if (value && std::isfinite(*value)) json[name] = *value;
  };
  add("accuracy", record.accuracy());
  add("error", record.error());
  add("generalisation", record.generalisation());
  add("forgetting", record.forgetting());
  add("validation", record.validation_accuracy());
  return json;
}

Json run_to_json(const Record& record) {
  Json json = {{"key", clean_text(record.key)},
               {"labels", cleaned(record.labels.to_json())},
               {"spec", cleaned(record.spec.to_json())},
               {"metrics", metrics(record)},
               {"domains", scores(record.domains)}};
  if (record.held_out) json["held_out"] = scores({*record.held_out}).front();
  if (record.source) {
    json["source"] = {{"before", scores(record.source->before)},
                      {"after", scores(record.source->after)}};
  }
  if (!record.validation.empty()) json["validation"] = scores(record.validation);
  json["steps"] = record.steps;
  json["refused"] = record.refused;
  json["skipped"] = record.skipped;
  json["guard"] = {{"judgements", record.guard.judgements},
                   {"collapses", record.guard.collapses},
                   {"rollbacks", record.guard.rollbacks},
                   {"stopped", record.guard.stopped},
                   {"events", Json::array()}};
  for (const auto& event : record.guard.events) json["guard"]["events"].push_back(cleaned(event));
  json["cost"] = {{"step_median_ms", record.cost.step_median}};
  if (record.cost.peak_memory > 0) {
    json["cost"]["peak_memory"] = record.cost.peak_memory;
    json["cost"]["memory_of"] = clean_text(record.cost.memory_of);
  }
  json["provenance"] = cleaned(record.provenance);
  json["data_hash"] = clean_text(record.data_hash);
  if (!record.trace.empty()) json["trace"] = clean_text(record.trace);
  return json;
}

/// Sets of layers, each kept once.
class LayerSets {
 public:
  std::size_t number(const Record& record) {
    Json set = {{"names", Json::array()}, {"blocks", Json::array()}};
    for (const LayerUse& layer : record.layers) {
      set["names"].push_back(clean_text(layer.name));
      set["blocks"].push_back(layer.block);
    }
    const std::string text = set.dump();
    const auto [found, fresh] = numbers_.emplace(text, sets_.size());
    if (fresh) sets_.push_back(std::move(set));
    return found->second;
  }
  Json take() { return std::move(sets_); }

 private:
  std::map<std::string, std::size_t> numbers_;
  Json sets_ = Json::array();
};

/// Four digits are enough to draw.
double rounded(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const double power = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(power) ? std::round(value * power) / power : value;
}

Json series_of(const Record& record, LayerSets& sets) {
  Json json = {{"layer_set", sets.number(record)},
               {"chosen", Json::array()},
               {"path", Json::array()},
               {"net", Json::array()},
               {"choices", record.choices}};
  for (const LayerUse& layer : record.layers) {
    json["chosen"].push_back(layer.chosen);
    json["path"].push_back(rounded(layer.path));
    json["net"].push_back(rounded(layer.net));
  }
  json["gap"] = {
      {"steps", record.gap.steps}, {"zero", record.gap.zero}, {"decades", record.gap.decades}};
  Json images = Json::array(), borders = Json::array();
  for (const std::int64_t size : record.over_time.images) {
    if (!images.empty() && images.back()[0] == size) {
      images.back()[1] = images.back()[1].get<std::int64_t>() + 1;
    } else {
      images.push_back({size, 1});
    }
  }
  for (const auto& [batch, name] : record.over_time.borders) {
    borders.push_back({batch, clean_text(name)});
  }
  json["time"] = {{"images", images}, {"correct", record.over_time.correct}, {"borders", borders}};
  if (const auto threshold = spec_number(record.spec.select, "threshold")) {
    json["threshold"] = *threshold;
  }
  return json;
}

/// Numbers of runs in the order in which they are given room.
std::vector<std::size_t> by_importance(const PageContent& content) {
  std::vector<std::size_t> order;
  std::set<std::size_t> seen;
  const auto add = [&](std::size_t number) {
    if (seen.insert(number).second) order.push_back(number);
  };
  for (const Figure& figure : content.figures) {
    for (const Chart& chart : figure.charts) {
      for (const ChartRun& run : chart.runs) add(run.run);
    }
  }
  const Record* first = content.records->data();
  for (const TableSet& set : content.tables) {
    for (const Row& row : set.variants.front().rows) {
      for (const Cell& cell : row.cells) {
        for (const Record* record : cell.runs) add(static_cast<std::size_t>(record - first));
      }
    }
  }
  for (std::size_t i = 0; i < content.records->size(); ++i) add(i);
  return order;
}

}  // namespace

nlohmann::ordered_json page_data(const PageContent& content,
                                 const std::vector<std::vector<const Record*>>& cells,
                                 std::size_t room) {
  const std::vector<Record>& records = *content.records;
  Json data = {{"runs", Json::array()}, {"details", Json::object()}};
  for (const Record& record : records) data["runs"].push_back(run_to_json(record));
  LayerSets sets;
  std::size_t used = 0;
  for (const std::size_t number : by_importance(content)) {
    Json series = series_of(records[number], sets);
    used += series.dump().size();
    if (used > room) break;
    // Traces do not count: a store has few of them, and whoever asked for one wants to see it.
    const auto cosines = content.cosines.find(records[number].key);
    if (cosines != content.cosines.end() && !cosines->second.steps.empty()) {
      series["trace"] = cosines->second.to_json();
    }
    data["details"][std::to_string(number)] = std::move(series);
  }
  data["layer_sets"] = sets.take();
  data["cells"] = Json::array();
  for (const auto& cell : cells) {
    Json list = Json::array();
    for (const Record* record : cell) list.push_back(record - records.data());
    data["cells"].push_back(std::move(list));
  }
  data["templates"] = chart_templates();
  data["figures"] = Json::object();
  for (const Figure& figure : content.figures) {
    Json charts = Json::array();
    for (const Chart& chart : figure.charts) charts.push_back(cleaned(chart.to_json()));
    data["figures"][figure.id] = std::move(charts);
  }
  return data;
}

}  // namespace gala
