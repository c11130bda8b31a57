#include "cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "cli/text.h"
#include "gala/protocol/provenance.h"
#include "gala/protocol/selection.h"

namespace gala {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string percent(std::optional<double> share) {
  return share && std::isfinite(*share) ? fmt::format("{:.2f}", 100 * *share) : "-";
}

std::string short_number(std::optional<double> value) {
  return value ? fmt::format("{:.3g}", *value) : "-";
}

/// Milliseconds an image, the median over records of this network on this device.
std::optional<double> time_per_image(const Store* store, const ReadyRun& run,
                                     const Machine& machine) {
  std::vector<double> times;
  if (!store) return std::nullopt;
  for (const Record& record : store->records()) {
    std::int64_t images = 0;
    for (const std::int64_t size : record.over_time.images) images += size;
    const bool alike = record.spec.model == run.spec.model &&
                       record.spec.batch_size == run.spec.batch_size &&
                       record.provenance.value("device", "") == machine.device.str();
    if (alike && images > 0) times.push_back(record.cost.total / static_cast<double>(images));
  }
  if (times.empty()) return std::nullopt;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

/// One line of a table of results.
struct Line {
  Labels labels;
  std::vector<Placed> runs;
  std::string hyper;
};

/// Runs of one row, loss, data set and backbone together, row by row as in the plan: records are in
/// the order in which runs ended.
std::vector<Line> lines_of(const std::vector<Placed>& runs, const ExperimentPlan& plan) {
  std::map<std::pair<std::string, std::string>, std::size_t> order;
  for (const PlannedRun& run : plan.runs) {
    order.try_emplace({run.labels.group, run.labels.row}, order.size());
  }
  std::vector<Line> lines;
  for (const Placed& run : runs) {
    Labels labels = *run.labels;
    const std::string hyper = format_hyper(labels.hyper);
    labels.hyper.clear();
    labels.environment.clear();
    labels.trial = 0;
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const Line& other) { return other.labels == labels; });
    if (line == lines.end()) line = lines.insert(lines.end(), Line{labels, {}, hyper});
    line->runs.push_back(run);
    if (line->hyper != hyper) line->hyper = "(each its own)";
  }
  const auto rank = [&](const Line& line) {
    const auto found = order.find({line.labels.group, line.labels.row});
    return found == order.end() ? order.size() : found->second;
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const Line& a, const Line& b) { return rank(a) < rank(b); });
  return lines;
}

/// Over trials; of a single trial, over its domains, as the paper does for corruptions.
std::optional<double> deviation_of(const Line& line) {
  std::map<std::int64_t, std::vector<Placed>> trials;
  for (const Placed& run : line.runs) trials[run.labels->trial].push_back(run);
  std::vector<double> values;
  for (const auto& [trial, runs] : trials) values.push_back(benchmark_accuracy(runs));
  if (values.size() == 1 && line.runs.size() == 1) {
    values.clear();
    for (const Score& score : line.runs.front().record->domains) values.push_back(score.accuracy());
  }
  return sample_deviation(values);
}

template <class Get>
std::optional<double> mean_of(const Line& line, Get get) {
  std::vector<double> values;
  for (const Placed& run : line.runs) {
    const std::optional<double> number = std::invoke(get, *run.record);
    if (!number) return std::nullopt;
    values.push_back(*number);
  }
  return mean(values);
}

/// The most memory a run held, the mean over runs.
std::string memory_text(const Line& line) {
  const auto memory = mean_of(line, [](const Record& record) -> std::optional<double> {
    const std::int64_t bytes = record.cost.peak_memory;
    return bytes > 0 ? std::optional(static_cast<double>(bytes)) : std::nullopt;
  });
  constexpr double kGigabyte = 1e9;
  return memory ? fmt::format("{:.2f} GB", *memory / kGigabyte) : "-";
}

void print_table(const std::vector<Placed>& runs, const ExperimentPlan& plan, bool with_hyper) {
  Rows rows = {{"row", "loss", "data", "network", "runs", "accuracy", "error", "±", "held out",
                "forgetting", "same norm", "ms/image", "memory"}};
  if (with_hyper) rows[0].push_back("hyper-parameters");
  for (const Line& line : lines_of(runs, plan)) {
    const double accuracy = benchmark_accuracy(line.runs);
    const Labels& labels = line.labels;
    rows.push_back({labels.group.empty() ? labels.row : labels.group + ": " + labels.row,
                    labels.loss.empty() ? "-" : labels.loss, labels.dataset, labels.backbone,
                    std::to_string(line.runs.size()), percent(accuracy), percent(1 - accuracy),
                    percent(deviation_of(line)), percent(mean_of(line, &Record::generalisation)),
                    percent(mean_of(line, &Record::forgetting)),
                    percent(mean_of(line, &Record::forgetting_in_norm)),
                    short_number(mean_of(line, ms_per_image)), memory_text(line)});
    if (with_hyper) rows.back().push_back(line.hyper);
  }
  std::cout << format_table(rows);
}

/// What a rule's choices rest on, so that nobody takes a part for the whole.
std::set<std::string> datasets_of(const Selected& selected) {
  std::set<std::string> names;
  for (const HyperChoice& choice : selected.choices) {
    names.insert(choice.datasets.begin(), choice.datasets.end());
  }
  return names;
}

void print_unfound(const Selected& selected) {
  for (const HyperChoice& choice : selected.choices) {
    if (choice.found) continue;
    std::cout << fmt::format("nothing can be chosen for {}{}{}\n", choice.scope.row,
                             choice.scope.loss.empty() ? "" : " with " + choice.scope.loss,
                             choice.missing.empty()
                                 ? ": its runs lack what the rule goes by"
                                 : ", runs are missing: " + choice.missing.front());
  }
}

}  // namespace

void print_run_heading(const ExperimentPlan& plan, const std::vector<ReadyRun>& runs,
                       const std::vector<const ReadyRun*>& to_do, std::int64_t new_places) {
  std::int64_t images = 0;
  for (const ReadyRun* run : to_do) images += run->images;
  std::cerr << fmt::format("plan    {}: {}\nruns    {}, of them {} to do ({} images)\n", plan.name,
                           plan.title, runs.size(), to_do.size(), with_commas(images));
  if (new_places > 0) {
    std::cerr << fmt::format("places  {} runs of other plans are runs of this one too\n",
                             new_places);
  }
}

void print_dry_run(const ExperimentPlan& plan, const std::vector<ReadyRun>& runs,
                   const std::vector<const ReadyRun*>& to_do, const Store* store,
                   const Machine& machine) {
  const std::set<const ReadyRun*> left(to_do.begin(), to_do.end());
  Rows rows = {{"state", "run", "data", "images", "key"}};
  std::int64_t images = 0, recorded = 0, timed = 0;
  double milliseconds = 0;
  for (const ReadyRun& run : runs) {
    const bool there = store && store->contains(run.key);
    recorded += there;
    const bool mine = left.contains(&run);
    rows.push_back({there  ? "recorded"
                    : mine ? "to do"
                           : "other shard",
                    run.name,
                    run.labels.environment.empty()
                        ? run.labels.dataset
                        : run.labels.dataset + " " + run.labels.environment,
                    with_commas(run.images), run.key.substr(0, 12)});
    if (!mine) continue;
    images += run.images;
    if (const auto time = time_per_image(store, run, machine)) {
      milliseconds += *time * static_cast<double>(run.images);
      ++timed;
    }
  }
  // Runs that could not be resolved have no key, but they are part of the plan.
  if (runs.empty()) {
    rows = {{"run"}};
    for (const PlannedRun& run : plan.runs) rows.push_back({run.describe()});
  }
  std::cout << format_table(rows);
  std::cout << fmt::format(
      "\n{}: {} runs asked for; {} different ones can be made, of them {} are recorded and {} to "
      "do "
      "({} images)\n",
      plan.name, plan.runs.size(), runs.size(), recorded, to_do.size(), with_commas(images));
  if (to_do.empty()) return;
  if (timed == 0) {
    std::cout << "time: no record of these networks on this device to estimate from\n";
    return;
  }
  const double share = static_cast<double>(to_do.size()) / static_cast<double>(timed);
  std::cout << fmt::format("time: about {} with {} at once, by the records of the same networks\n",
                           format_duration(milliseconds * share / 1000 / machine.jobs),
                           machine.jobs);
}

void print_results(const ExperimentPlan& plan, const std::vector<ReadyRun>& asked_for,
                   const std::vector<Record>& records) {
  std::set<std::string> keys;
  for (const ReadyRun& run : asked_for) keys.insert(run.key);
  std::int64_t contested = 0;
  const std::vector<Placed> runs = placed_runs(
      records,
      [&](const Placed& place) {
        return place.labels->plan == plan.name && keys.contains(place.record->key);
      },
      &contested);
  if (runs.empty()) return;
  if (contested > 0) {
    std::cout << fmt::format("{} places have several records: the later ones are shown\n",
                             contested);
  }
  for (const std::string& sentence : mixed_weights(runs)) std::cout << sentence << '\n';
  const bool grid = std::any_of(runs.begin(), runs.end(),
                                [](const Placed& run) { return !run.labels->hyper.empty(); });
  if (!grid) return print_table(runs, plan, false);
  for (const SelectionRule rule : {SelectionRule::kPerLoss, SelectionRule::kPerDataset,
                                   SelectionRule::kTrainingDomain, SelectionRule::kOracle}) {
    const Selected selected = select_hyper(runs, rule);
    std::cout << fmt::format("hyper-parameters by {} ({})\n", format_value(rule),
                             fmt::join(datasets_of(selected), ", "));
    print_table(selected.runs, plan, true);
    print_unfound(selected);
    std::cout << '\n';
  }
}

}  // namespace gala
