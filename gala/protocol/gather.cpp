#include "gala/protocol/gather.h"

#include <algorithm>
#include <numeric>

#include "gala/protocol/metrics.h"

#include "gala/model/classes.h"

namespace gala {
namespace {

constexpr std::size_t kMostEvents = 20;

std::int64_t choice_of(const StepRecord& step) {
  if (step.refused) return Record::kRefused;
  const std::vector<std::size_t> moved = step.selected();
  if (moved.empty()) return Record::kNone;
  return moved.size() == 1 ? static_cast<std::int64_t>(moved.front()) : Record::kSeveral;
}

/// The block of each layer; all its tensors are in the same one, unless a block is the layer.
std::vector<int> blocks_of(const Adapter& adapter) {
  std::map<std::string_view, int> by_name;
  for (const Parameter& parameter : adapter.model().parameters()) {
    by_name[parameter.name] = parameter.block;
  }
  std::vector<int> blocks;
  for (const Layer& layer : adapter.layers().layers) {
    blocks.push_back(by_name.at(adapter.parameters().entries()[layer.tensors.front()].name));
  }
  return blocks;
}

}  // namespace

Gatherer::Gatherer(const Stream& stream, const Adapter& adapter, bool trace)
    : stream_(stream), tracing_(trace), rotation_(adapter.layers().size()) {}

void Gatherer::score(const Batch& batch, const std::vector<std::int64_t>& predictions) {
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (batch.labels[i] < 0) continue;
    const auto& segments = stream_.segments;
    while (batch.positions[i] >= segments[segment_].begin + segments[segment_].size) ++segment_;
    tallies_[{segment_, batch.domains[i]}].take(predictions[i], batch.labels[i]);
  }
}

void Gatherer::take_step(const StepRecord& step) {
  const std::int64_t choice = choice_of(step);
  if (choices_.empty() || choices_.back().first != choice) choices_.emplace_back(choice, 0);
  ++choices_.back().second;
  rotation_.take(step);
  // Where a window opens every cosine is 1.
  if (step.window_step > 1 && step.layers.size() > 1) gaps_.push_back(step.gap());
  step_times_.push_back(step.times.total());
  if (tracing_) trace_.add(step);
}

void Gatherer::take(const Answered& answered) {
  const Batch& batch = answered.batch;
  const Answer& answer = answered.answer;
  times_ += answered.times;
  score(batch, answer.predictions);
  const auto segment = static_cast<std::size_t>(batch.segment);
  const std::string& name = stream_.segments[segment].name;
  auto& borders = over_time_.borders;
  const auto number = static_cast<std::int64_t>(over_time_.images.size());
  const std::int64_t begin = stream_.segments[segment].begin;
  if (borders.empty() || (batch.positions.front() == begin && begin > 0)) {
    borders.emplace_back(number, name);
  }
  over_time_.images.push_back(answered.tally.images);
  over_time_.correct.push_back(answered.tally.right);
  for (const StepRecord& step : answer.steps) take_step(step);
  if (!answer.health) return;
  ++guard_.judgements;
  if (!answer.health->collapsed) return;
  ++guard_.collapses;
  if (guard_.events.size() < kMostEvents) {
    guard_.events.push_back(nlohmann::json(answer.health->to_json()));
  }
}

void Gatherer::fill(const Adapter& adapter, Record& record) const {
  const AdapterTotals& totals = adapter.totals();
  for (const auto& [place, tally] : tallies_) {
    const Domain& domain = stream_.domains[static_cast<std::size_t>(place.second)];
    record.domains.push_back({domain.name, tally.counted, tally.right});
  }
  record.steps = totals.steps;
  record.refused = totals.refused;
  record.skipped = totals.skipped;
  record.from_source = totals.from_source;
  record.unanswered = totals.unanswered;
  record.choices = choices_;
  if (chooses_by_cosine(record) && rotation_.total().choices > 0) {
    record.rotation = rotation_.total();
  }
  record.gap = GapSummary::of(gaps_);
  record.over_time = over_time_;
  record.guard = guard_;
  record.guard.rollbacks = totals.rollbacks;
  record.guard.stopped = adapter.stopped();
  const std::vector<double> net = adapter.net_displacement();
  const std::vector<int> blocks = blocks_of(adapter);
  for (std::size_t l = 0; l < adapter.layers().size(); ++l) {
    const Layer& layer = adapter.layers()[l];
    record.layers.push_back({layer.name, blocks[l], layer.count, totals.chosen[l], totals.weight[l],
                             totals.path[l], net[l]});
  }
  record.cost.load = times_.load;
  const auto batches = static_cast<double>(over_time_.images.size());
  record.cost.batch_mean = batches > 0 ? times_.answer / batches : 0;
  if (step_times_.empty()) return;
  const auto steps = static_cast<double>(step_times_.size());
  record.cost.step_mean = mean(step_times_);
  std::vector<double> ordered = step_times_;
  std::sort(ordered.begin(), ordered.end());
  record.cost.step_median = quantile(ordered, 0.5);
  record.cost.step_95 = quantile(ordered, 0.95);
  record.cost.parts = {{"forward", times_.steps.forward / steps},
                       {"backward", times_.steps.backward / steps},
                       {"measure", times_.steps.measure / steps},
                       {"select", times_.steps.select / steps},
                       {"apply", times_.steps.apply / steps}};
}

}  // namespace gala
