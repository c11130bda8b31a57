#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstdlib>
#include <map>
#include <tuple>

#include "gala/report/table_parts.h"

namespace gala {
namespace {

bool is_continual(const std::vector<const PoolRun*>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const PoolRun* run) {
    return run->labels->benchmark == "continual" || run->record->domains.size() > 1;
  });
}

/// What the deviations of a table are over.
struct Deviations {
  std::set<std::int64_t> trials;  ///< how many, of the cells that are over trials
  bool domains = false;

  /// A sentence behind a caption; empty where there are none.
  std::string words() const {
    std::string over;
    if (!trials.empty()) {
      const auto [fewest, most] = std::pair(*trials.begin(), *trials.rbegin());
      over = fewest == most ? fmt::format("{} trials", most)
                            : fmt::format("{} to {} trials", fewest, most);
      over += " (the standard error of a mean is that, divided by the root of their number)";
    }
    if (domains)
      over +=
          over.empty() ? "the domains of a single run" : ", or of a single run over its domains";
    return over.empty() ? "" : " ± is the sample standard deviation over " + over + ".";
  }
};

constexpr const char* kForgetting = "Forget.";
constexpr const char* kForgettingInNorm = "Forget., same norm";

/// Over trials; of a single run with several domains, over those.
void set_deviation(Cell& cell, const std::vector<const PoolRun*>& runs, bool as_error,
                   Deviations& deviations) {
  if (cell.deviation) deviations.trials.insert(cell.samples);
  if (runs.size() != 1 || runs.front()->record->domains.size() < 2) return;
  deviations.domains = true;
  std::vector<double> samples;
  for (const Score& score : runs.front()->record->domains) {
    samples.push_back(100 * (as_error ? 1 - score.accuracy() : score.accuracy()));
  }
  set_samples(cell, samples);
}

struct Place {
  std::string dataset, backbone;
  auto operator<=>(const Place&) const = default;
};

/// Whether a run's norm mode is not the source's, so that its forgetting has two parts.
bool changes_norm(const std::vector<const PoolRun*>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const PoolRun* run) {
    return run->record->source && !run->record->source->before_in_norm.empty();
  });
}

/// Whether methods come with several losses each, as in the paper: a loss is then a block of its own. Elsewhere
/// it is part of a method.
bool crosses_losses(const Pool& pool) {
  const auto losses = losses_by_method(pool);
  return std::any_of(losses.begin(), losses.end(),
                     [](const auto& method) { return method.second.size() > 1; });
}

/// Marks the best of a block, whose rows adapt, and of the group's others: doing nothing competes in the
/// score, but not in forgetting, where it would always win. Returns whether a mean lacks trials.
bool mark_block(Table& table, const std::vector<std::size_t>& adapting,
                const std::vector<std::size_t>& idle, IdleRivals& rivals) {
  std::vector<std::size_t> all = idle;
  all.insert(all.end(), adapting.begin(), adapting.end());
  bool fewer_trials = false;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const bool forgetting = table.columns[c].name.starts_with(kForgetting);
    if (!forgetting) rivals.see(table, c, all);
    // Doing nothing has no loss, and is compared with what has one all the same.
    fewer_trials =
        mark_column(table, c, forgetting ? adapting : all, /*across_losses=*/true) || fewer_trials;
  }
  return fewer_trials;
}

/// Marks the best of each group, or of each loss in it.
IdleRivals mark_groups(Table& table, bool by_loss) {
  struct Group {
    std::vector<std::size_t> idle;
    std::map<std::string, std::vector<std::size_t>> adapting;  // by loss
  };
  std::map<std::string, Group> groups;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const Row& row = table.rows[r];
    Group& group = groups[row.group];
    if (row.loss.empty()) {
      group.idle.push_back(r);
    } else {
      group.adapting[by_loss ? row.loss : ""].push_back(r);
    }
  }
  bool fewer_trials = false;
  IdleRivals rivals;
  for (auto& [name, group] : groups) {
    if (group.adapting.empty()) group.adapting[""] = {};
    for (const auto& [loss, rows] : group.adapting) {
      fewer_trials = mark_block(table, rows, group.idle, rivals) || fewer_trials;
    }
  }
  if (fewer_trials) table.notes.emplace_back(kFewerTrials);
  return rivals;
}

/// Columns of one place: score, forgetting, and where the norm mode changes, forgetting within it.
struct Lane {
  Place place;
  bool error = false;
  bool in_norm = false;
};

/// The order of a plan's rows as far as records tell it: as they first appear, but rows that differ in a
/// number alone by that number, since runs that are made at once are recorded as they end. Plain numbers
/// come before words.
class RowOrder {
 public:
  struct Rank {
    std::size_t stem;  ///< of the name without its number
    double number;
    auto operator<=>(const Rank&) const = default;
  };
  /// Names must be asked for in the order in which they appear.
  Rank rank(const std::string& name) {
    const std::size_t begin = name.find_first_of("0123456789");
    std::string stem = name;
    double number = 0;
    if (begin != std::string::npos) {
      char* end = nullptr;
      number = std::strtod(name.c_str() + begin, &end);
      stem.erase(begin, static_cast<std::size_t>(end - name.c_str()) - begin);
    }
    return {stems_.try_emplace(stem, stems_.size()).first->second, number};
  }

 private:
  std::map<std::string, std::size_t> stems_ = {{"", 0}};
};

}  // namespace

Table plan_table(const Pool& pool, const std::string& plan) {
  Table table;
  table.title = plan.empty() ? "Runs without a plan" : "Plan " + plan;
  table.heads = {"Group", "TTA", "Method"};
  std::vector<Place> places;
  using Line = std::tuple<std::string, std::string, std::string>;
  std::vector<Line> lines;
  for (const PoolRun& run : pool.candidates()) {
    const Place place{run.labels->dataset, run.labels->backbone};
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    const Line line{run.labels->group, run.loss, run.labels->row};
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  // Within a group by loss: groups in the order in which they first appear, losses by name.
  std::vector<std::string> groups;
  for (const auto& [group, loss, name] : lines) {
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  RowOrder order;
  std::map<Line, std::tuple<std::ptrdiff_t, std::string, RowOrder::Rank>> ranks;
  for (const Line& line : lines) {
    const auto& [group, loss, name] = line;
    ranks[line] = {std::find(groups.begin(), groups.end(), group) - groups.begin(), loss,
                   order.rank(name)};
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const Line& a, const Line& b) { return ranks[a] < ranks[b]; });
  const bool grouped = std::any_of(lines.begin(), lines.end(),
                                   [](const Line& line) { return !std::get<0>(line).empty(); });
  if (!grouped) table.heads.erase(table.heads.begin());
  bool errors = false, in_norm = false;
  std::vector<Lane> lanes;
  for (const Place& place : places) {
    const auto runs = pool.find({.backbone = place.backbone, .dataset = place.dataset});
    const Lane& lane = lanes.emplace_back(Lane{place, is_continual(runs), changes_norm(runs)});
    errors = errors || lane.error;
    in_norm = in_norm || lane.in_norm;
    const std::string over = fmt::format("{}, {}", place.dataset, place.backbone);
    table.columns.push_back(
        {.name = lane.error ? "Error" : "Accuracy", .over = over, .higher_is_better = !lane.error});
    table.columns.push_back({.name = kForgetting, .over = over, .higher_is_better = false});
    if (lane.in_norm) {
      table.columns.push_back({.name = kForgettingInNorm, .over = over, .higher_is_better = false});
    }
  }
  table.caption = fmt::format(
      "{}, and drop on the source after adaptation (%){}.", errors ? "Error" : "Accuracy",
      in_norm ? ": from the source model with its own statistics, and from the source model in the "
                "norm mode of the run, which leaves what the moved parameters cost"
              : "");
  Deviations deviations;
  const bool by_loss = crosses_losses(pool);
  for (const auto& [group, loss, name] : lines) {
    Row row{{loss.empty() ? "–" : loss, name}, {}, false};
    if (grouped) row.heads.insert(row.heads.begin(), group.empty() ? "–" : group);
    row.loss = loss;
    row.group = group;
    row.method = name;
    row.border = table.rows.empty() || table.rows.back().group != group ||
                 (by_loss && table.rows.back().loss != loss);
    for (const Lane& lane : lanes) {
      const PoolQuery query{lane.place.backbone, loss, plain_name(group), plain_row(name),
                            lane.place.dataset};
      const std::vector<const PoolRun*> runs = pool.find(query);
      const std::set<std::int64_t> trials =
          pool.trials({.backbone = lane.place.backbone, .dataset = lane.place.dataset});
      row.cells.push_back(mean_cell(runs, lane.error ? error_of : accuracy_of, 100));
      set_deviation(row.cells.back(), runs, lane.error, deviations);
      note_trials(row.cells.back(), trials);
      explain_missing(row.cells.back(), pool, query);
      row.cells.push_back(mean_cell(
          runs, [](const PoolRun& run) { return run.record->forgetting(); }, 100));
      if (!lane.in_norm) continue;
      row.cells.push_back(mean_cell(
          runs, [](const PoolRun& run) { return run.record->forgetting_in_norm(); }, 100));
    }
    table.rows.push_back(std::move(row));
  }
  table.caption += deviations.words();
  const std::string rivals = mark_groups(table, by_loss).words();
  table.caption +=
      fmt::format(" Bold is the best {}{}{}.",
                  by_loss   ? "for a loss"
                  : grouped ? "of a group"
                            : "of all",
                  rivals, rivals.empty() ? "" : ", and in forgetting of those that adapt");
  return table;
}

}  // namespace gala
