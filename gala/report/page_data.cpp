#include <cmath>
#include <set>

#include "gala/report/page.h"
#include "gala/report/printers.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

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

constexpr int kDigits = 4;  // enough to draw

Json series_of(const Record& record, LayerSets& sets) {
  Json json = {{"layer_set", sets.number(record)},
               {"chosen", Json::array()},
               {"path", Json::array()},
               {"net", Json::array()},
               {"choices", record.choices}};
  for (const LayerUse& layer : record.layers) {
    json["chosen"].push_back(layer.chosen);
    json["path"].push_back(rounded(layer.path, kDigits));
    json["net"].push_back(rounded(layer.net, kDigits));
  }
  // Gaps and thresholds of other selectors are not those of cosines.
  const bool by_cosine = chooses_by_cosine(record);
  const GapSummary gap = by_cosine ? record.gap : GapSummary{};
  json["gap"] = {{"steps", gap.steps}, {"zero", gap.zero}, {"decades", gap.decades}};
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
  const auto threshold = spec_number(record.spec.select, "threshold");
  if (by_cosine && threshold) json["threshold"] = *threshold;
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
                                 const std::vector<std::vector<const Record*>>& cells) {
  const std::vector<Record>& records = *content.records;
  Json data = {{"runs", page_runs(records)}, {"cells", Json::array()}};
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

void set_series(nlohmann::ordered_json& data, const PageContent& content, std::size_t room) {
  const std::vector<Record>& records = *content.records;
  Json details = Json::object();
  LayerSets sets;
  std::size_t used = 0;
  for (const std::size_t number : by_importance(content)) {
    Json series = series_of(records[number], sets);
    used += series.dump().size();
    if (used > room) break;
    details[std::to_string(number)] = std::move(series);
  }
  data["details"] = std::move(details);
  data["layer_sets"] = sets.take();
}

void add_traces(nlohmann::ordered_json& data, const PageContent& content) {
  for (auto& [number, series] : data["details"].items()) {
    const auto cosines = content.cosines.find((*content.records)[std::stoul(number)].key);
    if (cosines != content.cosines.end() && !cosines->second.steps.empty()) {
      series["trace"] = cosines->second.to_json();
    }
  }
}

}  // namespace gala
