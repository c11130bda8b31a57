#include <cmath>

#include "gala/report/page.h"
#include "gala/report/printers.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

/// Fields of many runs, each field a column. Runs repeat each other: most columns are a short list of
/// values and the number of each run's value.
class Columns {
 public:
  /// The next run; what is not set for it stays away.
  void add_run() { ++runs_; }

  /// Field `name` of `group`, or without `name` the group itself.
  void set(const std::string& group, const std::string& name, Json value) {
    const auto [found, fresh] = numbers_.emplace(std::pair(group, name), columns_.size());
    if (fresh) columns_.push_back({group, name, {}, {}, {}});
    Column& column = columns_[found->second];
    column.of.resize(runs_ - 1, -1);
    const auto [place, unseen] = column.places.emplace(value.dump(), column.values.size());
    if (unseen) column.values.push_back(std::move(value));
    column.of.push_back(static_cast<std::int64_t>(place->second));
  }

  Json take() {
    Json json = {{"count", runs_}, {"columns", Json::array()}};
    for (Column& column : columns_) {
      column.of.resize(runs_, -1);
      json["columns"].push_back(column.to_json());
    }
    return json;
  }

 private:
  struct Column {
    std::string group, name;
    Json values = Json::array();
    std::map<std::string, std::size_t> places;  ///< in `values`, by their text
    std::vector<std::int64_t> of;               ///< the place of each run's value; -1: it has none

    Json to_json() const {
      Json json = {{"at", {clean_text(group)}}};
      if (!name.empty()) json["at"].push_back(clean_text(name));
      // A list of numbers pays only where values come again.
      if (values.size() * 2 <= of.size()) {
        json["values"] = values;
        json["of"] = of;
        return json;
      }
      json["values"] = Json::array();
      for (const std::int64_t place : of) {
        json["values"].push_back(place < 0 ? Json() : values[static_cast<std::size_t>(place)]);
      }
      return json;
    }
  };

  std::size_t runs_ = 0;
  std::map<std::pair<std::string, std::string>, std::size_t> numbers_;
  std::vector<Column> columns_;
};

void set_all(Columns& columns, const std::string& group, const nlohmann::ordered_json& object) {
  if (!object.is_object()) {
    columns.set(group, "", object);
    return;
  }
  for (const auto& [name, value] : object.items()) columns.set(group, name, value);
}

/// Names and numbers of images, which many runs share, apart from the right answers.
void set_scores(Columns& columns, const std::string& group, const std::vector<Score>& scores) {
  Json sets = Json::array(), correct = Json::array();
  for (const Score& score : scores) {
    sets.push_back({clean_text(score.name), score.images});
    correct.push_back(score.correct);
  }
  columns.set(group, "sets", std::move(sets));
  columns.set(group, "correct", std::move(correct));
}

constexpr int kDigits = 6;  // more than the page shows of time and memory

void set_cost(Columns& columns, const Cost& cost) {
  if (std::isfinite(cost.step_median)) {
    columns.set("cost", "step_median_ms", rounded(cost.step_median, kDigits));
  }
  if (cost.peak_memory > 0) {
    columns.set("cost", "peak_memory", rounded(static_cast<double>(cost.peak_memory), kDigits));
    columns.set("cost", "memory_of", clean_text(cost.memory_of));
  }
}

void set_guard(Columns& columns, const GuardSummary& guard) {
  Json events = Json::array();
  for (const auto& event : guard.events) events.push_back(cleaned(event));
  set_all(columns, "guard",
          {{"judgements", guard.judgements},
           {"collapses", guard.collapses},
           {"rollbacks", guard.rollbacks},
           {"stopped", guard.stopped},
           {"events", std::move(events)}});
}

void set_run(Columns& columns, const Record& record) {
  columns.set("key", "", clean_text(record.key));
  set_all(columns, "labels", cleaned(record.labels.to_json()));
  set_all(columns, "spec", cleaned(record.spec.to_json()));
  set_scores(columns, "domains", record.domains);
  if (record.held_out) set_scores(columns, "held_out", {*record.held_out});
  if (record.source) {
    set_scores(columns, "source_before", record.source->before);
    if (!record.source->before_in_norm.empty()) {
      set_scores(columns, "source_in_norm", record.source->before_in_norm);
    }
    set_scores(columns, "source_after", record.source->after);
  }
  if (!record.validation.empty()) set_scores(columns, "validation", record.validation);
  columns.set("steps", "", record.steps);
  columns.set("refused", "", record.refused);
  columns.set("skipped", "", record.skipped);
  if (const std::optional<Rotation> rotation = rotation_of(record)) {
    set_all(columns, "rotation",
            {{"choices", rotation->choices},
             {"repeats", rotation->repeats},
             {"by_chance", rounded(rotation->by_chance, 3)}});
  }
  set_guard(columns, record.guard);
  set_cost(columns, record.cost);
  set_all(columns, "provenance", cleaned(record.provenance));
  columns.set("data_hash", "", clean_text(record.data_hash));
  if (!record.trace.empty()) columns.set("trace", "", clean_text(record.trace));
}

}  // namespace

nlohmann::ordered_json cleaned(const nlohmann::json& json) {
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

double rounded(double value, int digits) {
  if (!std::isfinite(value) || value == 0) return value;
  const double power = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(power) ? std::round(value * power) / power : value;
}

nlohmann::ordered_json page_runs(const std::vector<Record>& records) {
  Columns columns;
  for (const Record& record : records) {
    columns.add_run();
    set_run(columns, record);
  }
  return columns.take();
}

}  // namespace gala
