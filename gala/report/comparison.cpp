#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "gala/base/error.h"
#include "gala/base/spec.h"
#include "gala/report/table_parts.h"

namespace gala {
namespace {

/// What two rows are compared at: network, stream or target, and source model. Runs that differ in their seed
/// alone are repeats of one.
using Unit = std::tuple<std::string, std::string, std::string, std::string, std::string>;

/// Rows that stand beside each other.
struct Place {
  std::string plan, group, dataset, backbone, loss;
  auto operator<=>(const Place&) const = default;
};

struct Mean {
  double sum = 0;
  std::int64_t count = 0;
  double value() const { return sum / static_cast<double>(count); }
};

/// Scores of one row at a place, in percent, by what they can be paired at.
struct Scores {
  std::map<Unit, Mean> units = {};
  std::set<std::int64_t> seeds = {};
  std::vector<const Record*> runs = {};
};

struct Sides {
  bool error = false;
  Scores first = {}, second = {};
};

void add(const PoolRun& run, bool error, Scores& scores) {
  const Record& record = *run.record;
  scores.runs.push_back(&record);
  scores.seeds.insert(record.spec.seed);
  for (const Score& score : record.domains) {
    if (score.images == 0) continue;
    Mean& mean = scores.units[{record.spec.protocol, record.spec.stream,
                               record.spec.training.dump(), run.labels->environment, score.name}];
    mean.sum += 100 * (error ? 1 - score.accuracy() : score.accuracy());
    ++mean.count;
  }
}

/// Differences, first less second, where both have a score; and the means of those.
struct Pairs {
  std::vector<double> differences = {};
  double first = 0, second = 0;
};

Pairs pairs_of(const Sides& sides) {
  Pairs pairs;
  for (const auto& [unit, score] : sides.first.units) {
    const auto other = sides.second.units.find(unit);
    if (other == sides.second.units.end()) continue;
    pairs.differences.push_back(score.value() - other->second.value());
    pairs.first += score.value();
    pairs.second += other->second.value();
  }
  const auto count = static_cast<double>(std::max<std::size_t>(pairs.differences.size(), 1));
  pairs.first /= count;
  pairs.second /= count;
  return pairs;
}

Cell number(double value, const Scores* of = nullptr) {
  Cell cell{.state = Cell::State::kValue, .value = value};
  if (of) cell.runs = of->runs;
  return cell;
}

Row row_of(const Place& place, const Sides& sides, const Pairs& pairs, bool grouped) {
  Row row;
  row.heads = {place.plan, place.group, place.loss,
               fmt::format("{}, {}", place.dataset, place.backbone)};
  if (!grouped) row.heads.erase(row.heads.begin() + 1);
  row.loss = place.loss;
  row.cells = {number(pairs.first, &sides.first), number(pairs.second, &sides.second),
               number(mean(pairs.differences))};
  set_samples(row.cells.back(), pairs.differences);
  const std::optional<Interval> interval = row.cells.back().interval;
  const std::optional<double> chance = sign_flip_test(pairs.differences);
  for (const std::optional<double>& value :
       {interval ? std::optional(interval->low) : std::nullopt,
        interval ? std::optional(interval->high) : std::nullopt, chance}) {
    row.cells.push_back(value ? number(*value) : Cell{.state = Cell::State::kNotApplicable});
  }
  row.cells.push_back(number(static_cast<double>(pairs.differences.size())));
  row.cells[2].deviation.reset();  // that of the pairs, which is not the mean's
  return row;
}

/// Says where the runs differ in what is no part of the rows: a difference may come from that.
void add_mixtures(const std::vector<std::pair<Place, Sides>>& places, Table& table) {
  std::map<std::string, std::set<std::string>> found;
  for (const auto& [place, sides] : places) {
    std::map<std::string, std::set<std::string>> here;
    for (const Scores* scores : {&sides.first, &sides.second}) {
      for (const Record* run : scores->runs) {
        here["precisions"].insert(run->spec.precision);
        here["builds"].insert(provenance_text(*run, "commit").substr(0, 7));
      }
    }
    for (const auto& [name, values] : here) {
      if (values.size() > 1) found[name].insert(fmt::format("{}", fmt::join(values, " and ")));
    }
  }
  for (const auto& [name, values] : found) {
    table.notes.push_back(
        fmt::format("Runs of different {} are compared: {}.", name, fmt::join(values, "; ")));
  }
}

/// The nearest by spelling, then those that contain the words; to no words nothing is near.
std::vector<std::string> near_rows(std::vector<std::string> rows, const std::string& row) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> near;
  if (row.empty()) return near;
  while (near.size() < kNamed) {
    std::string next = nearest(row, rows);
    if (next.empty()) break;
    std::erase(rows, next);
    near.push_back(std::move(next));
  }
  for (const std::string& other : rows) {
    if (near.size() == kNamed) break;
    // As they are spelled: what tables call the source model by has no letters of its name.
    if (plain_name(other).find(plain_name(row)) != std::string::npos) near.push_back(other);
  }
  return near;
}

/// Names all rows where they are few, else those near it and where all of them stand.
[[noreturn]] void fail_with_rows(const std::set<std::string>& known, const std::string& row) {
  constexpr std::size_t kFew = 12;
  const std::vector<std::string> rows(known.begin(), known.end());
  if (rows.size() <= kFew) {
    fail<ConfigError>("--compare: there is no row \"{}\"{}", row, suggestion(row, rows));
  }
  const std::vector<std::string> near = near_rows(rows, row);
  const std::string named =
      near.empty() ? "" : fmt::format("near it: \"{}\"; ", fmt::join(near, "\", \""));
  fail<ConfigError>(
      "--compare: there is no row \"{}\" ({}--format md without --compare shows all {} of them)",
      row, named, rows.size());
}

}  // namespace

Table comparison_table(const std::vector<Record>& records, const std::string& first,
                       const std::string& second, SelectionRule rule, const std::string& norm) {
  std::vector<std::string> plans;
  std::set<std::string> known;
  const auto take = [&](const Labels& labels) {
    if (std::find(plans.begin(), plans.end(), labels.plan) == plans.end())
      plans.push_back(labels.plan);
    known.insert(labels.row);
  };
  for (const Record& record : records) {
    take(record.labels);
    for (const Labels& labels : record.places) take(labels);
  }
  for (const std::string& row : {first, second}) {
    if (std::none_of(known.begin(), known.end(), [&](const std::string& other) {
          return plain_row(other) == plain_row(row);
        })) {
      fail_with_rows(known, row);
    }
  }
  Table table;
  table.id = "comparison";
  table.title = fmt::format("{} beside {}", first, second);
  std::vector<std::pair<Place, Sides>> places;
  for (const std::string& plan : plans) {
    const Pool pool(
        records, [&](const Labels& labels) { return labels.plan == plan; }, rule, norm);
    std::map<Place, Sides> found;
    std::vector<Place> order;
    // What does not adapt has no loss, and stands beside every one of the others.
    const auto sort_in = [&](const std::string& row, Scores Sides::*side) {
      for (const PoolRun& run : pool.runs()) {
        if (run.row != plain_row(row)) continue;
        const Place place{plan, run.labels->group, run.labels->dataset, run.labels->backbone,
                          run.loss};
        if (found.find(place) == found.end()) order.push_back(place);
        Sides& sides = found[place];
        sides.error = run.labels->benchmark == "continual" || run.record->domains.size() > 1;
        add(run, sides.error, sides.*side);
      }
    };
    sort_in(first, &Sides::first);
    sort_in(second, &Sides::second);
    for (const Place& place : order) {
      Sides& sides = found[place];
      Place idle = place;
      idle.loss.clear();
      for (Scores Sides::*side : {&Sides::first, &Sides::second}) {
        if (!(sides.*side).runs.empty() || place.loss.empty()) continue;
        if (const auto still = found.find(idle); still != found.end())
          sides.*side = still->second.*side;
      }
      if (!pairs_of(sides).differences.empty()) places.emplace_back(place, sides);
    }
  }
  if (places.empty()) {
    fail<ConfigError>("no plan has runs of both {} and {} that can be paired", first, second);
  }
  const bool grouped = std::any_of(places.begin(), places.end(),
                                   [](const auto& entry) { return !entry.first.group.empty(); });
  table.heads = {"Plan", "Group", "TTA", "Data, network"};
  if (!grouped) table.heads.erase(table.heads.begin() + 1);
  table.columns = {{.name = first, .directed = false},
                   {.name = second, .directed = false},
                   {.name = "Difference", .directed = false},
                   {.name = "from", .over = "95 % interval", .directed = false},
                   {.name = "to", .over = "95 % interval", .directed = false},
                   {.name = "p", .digits = 4, .unit = "", .directed = false},
                   {.name = "Pairs", .digits = 0, .unit = "", .directed = false}};
  bool errors = false, accuracies = false, repeats = false;
  for (const auto& [place, sides] : places) {
    table.rows.push_back(row_of(place, sides, pairs_of(sides), grouped));
    (sides.error ? errors : accuracies) = true;
    repeats = repeats || sides.first.seeds.size() > 1 || sides.second.seeds.size() > 1;
  }
  add_mixtures(places, table);
  table.caption = fmt::format(
      "Paired differences, {} less {}, in points of {}. A pair is one domain of one stream (its "
      "order included), or one target, under one source model{}. The interval is a percentile "
      "bootstrap over pairs; p is the share of random changes of sign whose mean is as far from 0. "
      "Domains of one stream follow on each other: they are less independent than either takes "
      "them for.",
      first, second,
      errors && accuracies ? "error (streams) or accuracy (targets)"
      : errors             ? "error"
                           : "accuracy",
      repeats ? "; runs that differ in their seed are averaged first" : "");
  return table;
}

}  // namespace gala
