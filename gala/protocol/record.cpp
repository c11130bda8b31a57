#include "gala/protocol/record.h"

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"
#include "gala/base/json.h"
#include "gala/base/words.h"
#include "gala/protocol/metrics.h"

namespace gala {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity: null stands for a number that is not finite.

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

double to_double(const nlohmann::json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

template <class Values>
Json numbers(const Values& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

Json scores_to_json(const std::vector<Score>& scores) {
  Json list = Json::array();
  for (const Score& score : scores) {
    list.push_back({{"name", score.name}, {"images", score.images}, {"correct", score.correct}});
  }
  return list;
}

std::vector<std::int64_t> counts_from(const nlohmann::json& list) {
  std::vector<std::int64_t> counts;
  for (const auto& value : list) counts.push_back(count_from(value));
  return counts;
}

Score score_from_json(const nlohmann::json& json) {
  return {json.at("name"), count_from(json.at("images")), count_from(json.at("correct"))};
}

std::vector<Score> scores_from_json(const nlohmann::json& list) {
  std::vector<Score> scores;
  for (const auto& score : list) scores.push_back(score_from_json(score));
  return scores;
}

Json layers_to_json(const std::vector<LayerUse>& layers) {
  Json list = Json::array();
  for (const LayerUse& layer : layers) {
    list.push_back({{"name", layer.name},
                    {"block", layer.block},
                    {"parameters", layer.parameters},
                    {"chosen", layer.chosen},
                    {"weight", number(layer.weight)},
                    {"path", number(layer.path)},
                    {"net", number(layer.net)}});
  }
  return list;
}

std::vector<LayerUse> layers_from_json(const nlohmann::json& list) {
  std::vector<LayerUse> layers;
  for (const auto& layer : list) {
    const std::int64_t block = count_from(layer.at("block"));
    constexpr std::int64_t kMostBlocks = 10'000;
    if (block > kMostBlocks) fail("has a layer in block {}", block);
    layers.push_back({layer.at("name"), static_cast<int>(block), count_from(layer.at("parameters")),
                      count_from(layer.at("chosen")), to_double(layer.at("weight")),
                      to_double(layer.at("path")), to_double(layer.at("net"))});
  }
  return layers;
}

/// Equal neighbours as [value, how often].
Json run_lengths(const std::vector<std::int64_t>& values) {
  Json list = Json::array();
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end < values.size() && values[end] == values[i]) ++end;
    list.push_back({values[i], end - i});
    i = end;
  }
  return list;
}

/// Which layer was chosen, and how many steps in a row.
std::vector<std::pair<std::int64_t, std::int64_t>> choices_from(const nlohmann::json& list) {
  std::vector<std::pair<std::int64_t, std::int64_t>> choices;
  constexpr std::int64_t kMostSteps = 100'000'000;
  std::int64_t steps = 0;
  for (const auto& item : list) {
    const bool code = item.at(0) == Record::kNone || item.at(0) == Record::kRefused ||
                      item.at(0) == Record::kSeveral;
    choices.emplace_back(code ? item.at(0).get<std::int64_t>() : count_from(item.at(0)),
                         count_from(item.at(1)));
    steps += choices.back().second;
    if (steps > kMostSteps) fail("has choices of more than {} steps", kMostSteps);
  }
  return choices;
}

/// Of `count` values in all: a few digits could stand for any number of them.
std::vector<std::int64_t> from_run_lengths(const nlohmann::json& list, std::size_t count) {
  std::vector<std::int64_t> values;
  for (const auto& run : list) {
    const std::int64_t length = count_from(run.at(1));
    if (static_cast<std::uint64_t>(length) > count - values.size()) {
      fail("has a run of {} batches among {}", length, count);
    }
    values.insert(values.end(), static_cast<std::size_t>(length), count_from(run.at(0)));
  }
  return values;
}

Json cost_to_json(const Cost& cost) {
  Json parts = Json::object();
  for (const auto& [name, time] : cost.parts) parts[name] = number(time);
  Json json = {{"total_ms", number(cost.total)},
               {"load_ms", number(cost.load)},
               {"batch_ms", number(cost.batch_mean)},
               {"step_ms", number(cost.step_mean)},
               {"step_median_ms", number(cost.step_median)},
               {"step_95_ms", number(cost.step_95)},
               {"parts_ms", parts}};
  if (cost.peak_memory > 0) {
    json["peak_memory"] = cost.peak_memory;
    json["memory_of"] = cost.memory_of;
  }
  return json;
}

Cost cost_from_json(const nlohmann::json& json) {
  Cost cost{to_double(json.at("total_ms")),
            to_double(json.at("load_ms")),
            to_double(json.at("batch_ms")),
            to_double(json.at("step_ms")),
            to_double(json.at("step_median_ms")),
            to_double(json.at("step_95_ms")),
            {},
            count_from(json.value("peak_memory", nlohmann::json(0))),
            json.value("memory_of", "")};
  for (const auto& [name, time] : json.at("parts_ms").items()) cost.parts[name] = to_double(time);
  return cost;
}

Json source_to_json(const SourceScores& source) {
  Json json = {{"augmented", source.augmented}, {"before", scores_to_json(source.before)}};
  if (!source.before_in_norm.empty()) {
    json["before_in_norm"] = scores_to_json(source.before_in_norm);
  }
  json["after"] = scores_to_json(source.after);
  return json;
}

SourceScores source_from_json(const nlohmann::json& json) {
  SourceScores source{json.at("augmented"),
                      scores_from_json(json.at("before")),
                      {},
                      scores_from_json(json.at("after"))};
  if (json.contains("before_in_norm")) {
    source.before_in_norm = scores_from_json(json["before_in_norm"]);
  }
  return source;
}

Json metrics_to_json(const Record& record) {
  Json metrics = Json::object();
  const auto add = [&](const char* name, std::optional<double> value) {
    if (value && std::isfinite(*value)) metrics[name] = *value;
  };
  add("accuracy", record.accuracy());
  add("error", record.error());
  add("generalisation", record.generalisation());
  add("forgetting", record.forgetting());
  if (record.source && !record.source->before_in_norm.empty()) {
    add("forgetting_in_norm", record.forgetting_in_norm());
  }
  add("validation", record.validation_accuracy());
  return metrics;
}

void read_results(const nlohmann::json& json, Record& record) {
  record.domains = scores_from_json(json.at("domains"));
  if (json.contains("held_out")) record.held_out = score_from_json(json["held_out"]);
  if (json.contains("source")) record.source = source_from_json(json["source"]);
  if (json.contains("validation")) record.validation = scores_from_json(json["validation"]);
  record.steps = count_from(json.at("steps"));
  record.refused = count_from(json.at("refused"));
  record.skipped = count_from(json.at("skipped"));
  record.from_source = count_from(json.value("from_source", nlohmann::json(0)));
  record.unanswered = count_from(json.value("unanswered", nlohmann::json(0)));
  record.layers = layers_from_json(json.at("layers"));
  record.choices = choices_from(json.at("choices"));
  if (json.contains("rotation")) {
    const auto& rotation = json["rotation"];
    record.rotation = {count_from(rotation.at("choices")), count_from(rotation.at("repeats")),
                       to_double(rotation.at("by_chance"))};
  }
  const auto& gap = json.at("gap");
  record.gap.steps = count_from(gap.at("steps"));
  record.gap.zero = count_from(gap.at("zero"));
  for (const auto& value : gap.at("quantiles")) record.gap.quantiles.push_back(to_double(value));
  record.gap.decades = counts_from(gap.at("decades"));
  const auto& time = json.at("over_time");
  record.over_time.correct = counts_from(time.at("correct"));
  record.over_time.images = from_run_lengths(time.at("images"), record.over_time.correct.size());
  for (const auto& border : time.at("borders")) {
    record.over_time.borders.emplace_back(count_from(border.at(0)), border.at(1));
  }
  const auto& guard = json.at("guard");
  record.guard = {count_from(guard.at("judgements")), count_from(guard.at("collapses")),
                  count_from(guard.at("rollbacks")), guard.at("stopped"),
                  guard.at("events").get<std::vector<nlohmann::json>>()};
  record.cost = cost_from_json(json.at("cost"));
}

}  // namespace

nlohmann::ordered_json Labels::to_json() const {
  return {{"plan", plan},
          {"group", group},
          {"row", row},
          {"benchmark", benchmark},
          {"dataset", dataset},
          {"backbone", backbone},
          {"environment", environment},
          {"trial", trial},
          {"loss", loss},
          {"hyper", hyper}};
}

Labels Labels::from_json(const nlohmann::json& json) {
  return {json.at("plan"),        json.at("group"),
          json.at("row"),         json.at("benchmark"),
          json.at("dataset"),     json.at("backbone"),
          json.at("environment"), json.at("trial"),
          json.at("loss"),        json.at("hyper").get<std::map<std::string, std::string>>()};
}

GapSummary GapSummary::of(std::vector<double> gaps) {
  // A trace of others may hold what is no number.
  std::erase_if(gaps, [](double gap) { return !std::isfinite(gap); });
  GapSummary summary;
  summary.steps = static_cast<std::int64_t>(gaps.size());
  constexpr std::size_t kDecades = 17;
  summary.decades.assign(kDecades, 0);
  if (gaps.empty()) return summary;
  std::sort(gaps.begin(), gaps.end());
  for (const double gap : gaps) {
    if (gap <= 0) {
      ++summary.zero;
      continue;
    }
    const double decade = std::floor(std::log10(gap)) + static_cast<double>(kDecades);
    ++summary.decades[static_cast<std::size_t>(std::clamp(decade, 0.0, kDecades - 1.0))];
  }
  for (const double share : kQuantiles) summary.quantiles.push_back(quantile(gaps, share));
  return summary;
}

double mean_accuracy(const std::vector<Score>& scores) {
  double sum = 0;
  std::int64_t count = 0;
  for (const Score& score : scores) {
    if (score.images == 0) continue;
    sum += score.accuracy();
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

double Record::accuracy() const {
  return mean_accuracy(domains);
}

std::optional<double> Record::generalisation() const {
  if (!held_out || held_out->images == 0) return std::nullopt;
  return held_out->accuracy();
}

std::optional<double> Record::forgetting() const {
  if (!source || source->before.empty() || source->after.empty()) return std::nullopt;
  return mean_accuracy(source->before) - mean_accuracy(source->after);
}

std::optional<double> Record::forgetting_in_norm() const {
  if (!source || source->before_in_norm.empty()) return forgetting();
  if (source->after.empty()) return std::nullopt;
  return mean_accuracy(source->before_in_norm) - mean_accuracy(source->after);
}

std::optional<double> Record::validation_accuracy() const {
  if (validation.empty()) return std::nullopt;
  return mean_accuracy(validation);
}

nlohmann::ordered_json Record::to_json() const {
  Json json = {{"schema", kRecordSchema},
               {"kind", "run"},
               {"key", key},
               {"labels", labels.to_json()},
               {"spec", spec.to_json()},
               {"data_hash", data_hash},
               {"metrics", metrics_to_json(*this)},
               {"domains", scores_to_json(domains)}};
  if (held_out) json["held_out"] = scores_to_json({*held_out}).front();
  if (source) json["source"] = source_to_json(*source);
  if (!validation.empty()) json["validation"] = scores_to_json(validation);
  json["steps"] = steps;
  json["refused"] = refused;
  json["skipped"] = skipped;
  if (from_source > 0) json["from_source"] = from_source;
  if (unanswered > 0) json["unanswered"] = unanswered;
  json["layers"] = layers_to_json(layers);
  json["choices"] = choices;
  if (rotation) {
    json["rotation"] = {{"choices", rotation->choices},
                        {"repeats", rotation->repeats},
                        {"by_chance", number(rotation->by_chance)}};
  }
  json["gap"] = {{"steps", gap.steps},
                 {"zero", gap.zero},
                 {"quantiles", numbers(gap.quantiles)},
                 {"decades", gap.decades}};
  json["over_time"] = {{"images", run_lengths(over_time.images)},
                       {"correct", over_time.correct},
                       {"borders", over_time.borders}};
  json["guard"] = {{"judgements", guard.judgements},
                   {"collapses", guard.collapses},
                   {"rollbacks", guard.rollbacks},
                   {"stopped", guard.stopped},
                   {"events", guard.events}};
  json["cost"] = cost_to_json(cost);
  json["provenance"] = provenance;
  if (!trace.empty()) json["trace"] = trace;
  return json;
}

void check_schema(const nlohmann::json& line) {
  const auto schema = line.find("schema");
  if (schema == line.end() || !schema->is_number_integer()) fail("is not a record: has no schema");
  const std::int64_t version = *schema;
  if (version > kRecordSchema) {
    fail("is of schema {}, this program reads up to {}: use a newer gala", version, kRecordSchema);
  }
  if (version < 1) fail("is of schema {}, which never was", version);
}

Record Record::from_json(const nlohmann::json& json) {
  if (!json.is_object()) fail("is not a record");
  check_schema(json);
  Record record;
  try {
    record.key = json.at("key");
    record.labels = Labels::from_json(json.at("labels"));
    record.spec = RunSpec::from_json(json.at("spec"));
    record.data_hash = json.at("data_hash");
    record.provenance = json.at("provenance");
    record.trace = json.value("trace", "");
    read_results(json, record);
  } catch (const nlohmann::json::exception& error) {
    fail("is not a whole record: {}", in_words(error));
  }
  return record;
}

}  // namespace gala
