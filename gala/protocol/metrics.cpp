#include "gala/protocol/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "gala/base/error.h"
#include "gala/base/options.h"
#include "gala/base/random.h"
#include "gala/base/spec.h"
#include "gala/select/gala.h"

namespace gala {

double mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> sample_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double centre = mean(values);
  double square = 0;
  for (const double value : values) square += (value - centre) * (value - centre);
  return std::sqrt(square / static_cast<double>(values.size() - 1));
}

double quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

std::optional<Interval> bootstrap_interval(std::span<const double> values, double level,
                                           std::int64_t resamples, std::uint64_t seed) {
  if (values.size() < 2 || resamples < 1) return std::nullopt;
  Random random(seed, "bootstrap");
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (double& drawn : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
    drawn = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  return Interval{quantile(means, (1 - level) / 2), quantile(means, (1 + level) / 2)};
}

std::optional<double> sign_flip_test(std::span<const double> values, std::int64_t draws,
                                     std::uint64_t seed) {
  if (values.size() < 2 || draws < 1) return std::nullopt;
  double sum = 0, size = 0;
  for (const double value : values) {
    sum += value;
    size += std::abs(value);
  }
  // Equal sums in another order of additions are as far.
  const double bound = std::abs(sum) - 1e-12 * size;
  constexpr std::size_t kFew = 13;
  const bool all = values.size() <= kFew;
  if (all) draws = std::int64_t{1} << values.size();
  Random random(seed, "signs");
  std::int64_t as_far = 0;
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    double flipped = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool turn = all ? (draw >> i) & 1 : random.below(2) == 1;
      flipped += turn ? -values[i] : values[i];
    }
    as_far += std::abs(flipped) >= bound;
  }
  // The values as they are count as one of the draws, so that no finite number of them proves more.
  return all ? static_cast<double>(as_far) / static_cast<double>(draws)
             : static_cast<double>(as_far + 1) / static_cast<double>(draws + 1);
}

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double shared = static_cast<double>(i + end + 1) / 2;  // mean of i + 1 .. end
    for (; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

std::optional<double> spearman(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size() || x.size() < 2) return std::nullopt;
  const std::vector<double> a = average_ranks(x), b = average_ranks(y);
  const double centre = (static_cast<double>(x.size()) + 1) / 2;
  double both = 0, first = 0, second = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - centre) * (b[i] - centre);
    first += (a[i] - centre) * (a[i] - centre);
    second += (b[i] - centre) * (b[i] - centre);
  }
  if (first == 0 || second == 0) return std::nullopt;
  return both / std::sqrt(first * second);
}

namespace {

/// 1 where the stream's spec names none, or is none.
std::int64_t visits_of(const Record& record) {
  try {
    const Spec stream = Spec::parse(record.spec.stream);
    const std::string* text = stream.find("visits");
    std::int64_t visits = 1;
    if (text && parse_value(*text, visits)) return visits;
  } catch (const ConfigError&) {
    // A record with a spec that is none is shown as it is.
  }
  return 1;
}

}  // namespace

std::vector<double> visit_errors(const Record& record) {
  const auto visits = static_cast<std::size_t>(std::max<std::int64_t>(1, visits_of(record)));
  if (visits == 1 || record.domains.empty() || record.domains.size() % visits != 0) return {};
  const auto domains = static_cast<std::ptrdiff_t>(record.domains.size() / visits);
  std::vector<double> errors;
  for (auto begin = record.domains.begin(); begin != record.domains.end(); begin += domains) {
    errors.push_back(1 - mean_accuracy({begin, begin + domains}));
  }
  return errors;
}

std::optional<double> ms_per_image(const Record& record) {
  const std::vector<std::int64_t>& sizes = record.over_time.images;
  const auto images =
      static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  const double time = record.cost.batch_mean * static_cast<double>(sizes.size());
  if (!(images > 0) || !(time > 0) || !std::isfinite(time)) return std::nullopt;
  return time / images;
}

std::vector<double> block_choices(const Record& record) {
  std::vector<double> blocks;
  for (const LayerUse& layer : record.layers) {
    if (layer.block < 1) continue;
    const auto block = static_cast<std::size_t>(layer.block);
    blocks.resize(std::max(blocks.size(), block), 0.0);
    blocks[block - 1] += static_cast<double>(layer.chosen);
  }
  return blocks;
}

bool chooses_by_cosine(const Record& record) {
  const std::string& select = record.spec.select;
  return select.empty() || select == "gala" || select.starts_with("gala:");
}

namespace {

/// From the choices of a record; nothing where it does not show where windows open.
std::optional<Rotation> count_rotation(const Record& record, const GalaSelector::Options& options) {
  if (options.mode != GalaMode::kSingle) return std::nullopt;
  // A step at which several layers move opens a window. Where the opening moves one layer or none, the
  // clock tells, as long as nothing set it back.
  const bool shown = options.opening == GalaOpening::kAll && options.opening_steps > 0 &&
                     (options.opening_scale > 0 || options.opening_rate > 0) &&
                     record.layers.size() > 1;
  const bool set_back =
      record.spec.episodic || record.spec.restart_at_borders || record.guard.rollbacks > 0;
  if (!shown && set_back) return std::nullopt;
  RotationCount count(record.layers.size());
  StepClock clock;
  for (const auto& [choice, times] : record.choices) {
    if (choice == Record::kRefused) continue;
    for (std::int64_t i = 0; i < times; ++i) {
      if (shown ? choice == Record::kSeveral : clock.opens_window()) count.open_window();
      if (choice >= 0) count.choose(choice);
      clock.advance(options.window);
    }
  }
  if (count.total().choices == 0) return std::nullopt;
  return count.total();
}

}  // namespace

std::optional<Rotation> rotation_of(const Record& record) {
  if (record.rotation || record.spec.select.empty() || !chooses_by_cosine(record)) {
    return record.rotation;
  }
  try {
    return count_rotation(record, parse_options<GalaSelector::Options>(
                                      Spec::parse(record.spec.select), Selector::kKind));
  } catch (const ConfigError&) {
    return std::nullopt;  // a record with a spec that is none is shown as it is
  }
}

std::optional<int> fixed_block(const Record& record) {
  const Spec select = Spec::parse(record.spec.select);
  const std::string* layers = select.find("layers");
  int block = 0;
  if (select.name != "fixed" || record.spec.partition != Granularity::kBlock || !layers ||
      !layers->starts_with("block") || !parse_value(std::string_view(*layers).substr(5), block) ||
      block < 1) {
    return std::nullopt;
  }
  return block;
}

std::vector<Placed> placed_runs(const std::vector<Record>& records,
                                const std::function<bool(const Placed&)>& wanted,
                                std::int64_t* contested) {
  std::vector<Placed> runs;
  std::vector<std::int64_t> lines;
  std::map<Labels, std::size_t> taken;
  std::int64_t cases = 0;
  const auto place = [&](const Placed& claim, std::int64_t line) {
    if (!wanted(claim)) return;
    const auto [found, fresh] = taken.emplace(*claim.labels, runs.size());
    if (fresh) {
      runs.push_back(claim);
      lines.push_back(line);
      return;
    }
    Placed& holder = runs[found->second];
    cases += holder.record != claim.record;
    if (line < lines[found->second]) return;
    holder = claim;
    lines[found->second] = line;
  };
  for (const Record& record : records) {
    place({&record, &record.labels}, record.line);
    for (std::size_t i = 0; i < record.places.size(); ++i) {
      // Records that come from no store have no lines: the later of them counts.
      place({&record, &record.places[i]}, record.place_lines.empty() ? 0 : record.place_lines[i]);
    }
  }
  if (contested) *contested = cases;
  return runs;
}

std::vector<Placed> placed_runs(const std::vector<Record>& records, const std::string& plan,
                                std::int64_t* contested) {
  const auto wanted = [&](const Placed& place) {
    return plan.empty() || place.labels->plan == plan;
  };
  return placed_runs(records, wanted, contested);
}

std::vector<std::string> mixed_weights(std::span<const Placed> runs) {
  std::map<std::string, std::set<std::string>> hashes;
  std::map<std::string, std::string> first;
  for (const Placed& run : runs) {
    const std::string training = run.record->spec.training.dump();
    hashes[training].insert(run.record->provenance.value("weight_hash", ""));
    first.emplace(training, fmt::format("{} {} {} {}", run.labels->backbone, run.labels->dataset,
                                        run.labels->environment, run.labels->trial));
  }
  std::vector<std::string> sentences;
  for (const auto& [training, different] : hashes) {
    if (different.size() < 2) continue;
    sentences.push_back(fmt::format("the source model of {} has {} different weights in these runs",
                                    first[training], different.size()));
  }
  return sentences;
}

bool same_shift(const Labels& a, const Labels& b) {
  return std::tie(a.dataset, a.backbone, a.environment, a.trial, a.loss) ==
         std::tie(b.dataset, b.backbone, b.environment, b.trial, b.loss);
}

std::vector<BlockStudy> study_blocks(std::span<const Placed> runs) {
  std::vector<BlockStudy> studies;
  for (const Placed& run : runs) {
    const std::optional<int> block = fixed_block(*run.record);
    if (!block) continue;
    auto study = std::find_if(studies.begin(), studies.end(), [&](const BlockStudy& other) {
      return same_shift(other.shift, *run.labels);
    });
    if (study == studies.end()) {
      study = studies.insert(studies.end(), BlockStudy{});
      study->shift.dataset = run.labels->dataset;
      study->shift.backbone = run.labels->backbone;
      study->shift.environment = run.labels->environment;
      study->shift.trial = run.labels->trial;
      study->shift.loss = run.labels->loss;
    }
    study->blocks[*block] = run.record;
  }
  for (BlockStudy& study : studies) {
    for (const auto& [block, record] : study.blocks) {
      if (!study.best || record->accuracy() > study.best->accuracy()) study.best = record;
      if (!study.worst || record->accuracy() < study.worst->accuracy()) study.worst = record;
    }
  }
  return studies;
}

std::optional<double> rank_correlation(const Record& run, const BlockStudy& oracle) {
  const std::vector<double> choices = block_choices(run);
  std::vector<double> accuracies;
  for (std::size_t block = 1; block <= choices.size(); ++block) {
    const auto found = oracle.blocks.find(static_cast<int>(block));
    if (found == oracle.blocks.end()) return std::nullopt;
    accuracies.push_back(found->second->accuracy());
  }
  return spearman(choices, accuracies);
}

}  // namespace gala
