#include "gala/report/pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "gala/base/error.h"
#include "gala/base/options.h"
#include "gala/base/spec.h"
#include "gala/report/published.h"

namespace gala {
namespace {

bool matches(const PoolRun& run, const PoolQuery& query) {
  return (!query.backbone || *query.backbone == run.labels->backbone) &&
         (!query.loss || *query.loss == run.loss) && (!query.group || *query.group == run.group) &&
         (!query.row || *query.row == run.row) &&
         (!query.dataset || *query.dataset == run.labels->dataset);
}

PoolRun pool_run(const Placed& placed) {
  return {placed.record, placed.labels, plain_name(placed.labels->group),
          plain_row(placed.labels->row), loss_name(placed.labels->loss)};
}

template <class Get>
std::vector<std::string> names(const std::vector<PoolRun>& runs, Get get) {
  std::vector<std::string> found;
  std::set<std::string> seen;
  for (const PoolRun& run : runs) {
    if (seen.insert(get(run)).second) found.push_back(get(run));
  }
  return found;
}

/// Whether the corruptions are gala's own: made on the way, or the arrays that `gala corrupt --corruption
/// all --severity 5` makes of the test images of CIFAR-10 and, read from class folders, CIFAR-100. These
/// are the same on every machine.
bool is_generated(const Record& record) {
  constexpr std::string_view kMade[] = {
      "ab873faadd83c46e0bf7c98f2ddb13fb126c3e5a40afbf60b6d6704107140f80",
      "973dc8145f320ebf184abe532bce462407acf000c98bf4e128c7a5287669527c"};
  return record.spec.data.find("generate=yes") != std::string::npos ||
         std::find(std::begin(kMade), std::end(kMade), record.data_hash) != std::end(kMade);
}

/// "a, b and c"; what records do not tell is "unknown".
std::string listed(std::set<std::string> names) {
  if (names.erase("") > 0) names.insert("unknown");
  const std::vector<std::string> all(names.begin(), names.end());
  if (all.size() < 2) return all.empty() ? "" : all.front();
  return fmt::format("{} and {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
}

/// How many adapting runs each plan has in each norm mode, of those plans in which one can choose: some row was run
/// in several, whichever trials of it are there. Where each has its own, the mode is part of what the row is.
std::map<std::string, std::map<std::string, std::int64_t>> norms_by_plan(
    const std::vector<Record>& records, const Wanted& wanted) {
  std::map<std::string, std::map<std::string, std::int64_t>> counts;
  std::map<Labels, std::string> norms;
  std::set<std::string> with_choice;
  const auto count = [&](const Record& record, const Labels& labels) {
    if (!wanted(labels) || labels.loss.empty()) return;
    ++counts[labels.plan][record.spec.norm];
    Labels row = labels;
    row.trial = 0;
    if (norms.try_emplace(row, record.spec.norm).first->second != record.spec.norm) {
      with_choice.insert(labels.plan);
    }
  };
  for (const Record& record : records) {
    count(record, record.labels);
    for (const Labels& labels : record.places) count(record, labels);
  }
  std::erase_if(counts, [&](const auto& plan) { return !with_choice.contains(plan.first); });
  return counts;
}

/// Each run, and whether its row has several sets of hyper-parameters. Where it has one, there is
/// nothing to choose, and no rule need have what it goes by.
std::vector<std::pair<Placed, bool>> with_choice(const std::vector<Placed>& placed) {
  const auto row_of = [](const Labels& labels) {
    Labels row = labels;
    row.dataset.clear();
    row.environment.clear();
    row.trial = 0;
    row.hyper.clear();
    return row;
  };
  std::map<Labels, std::set<std::map<std::string, std::string>>> sets;
  for (const Placed& place : placed) sets[row_of(*place.labels)].insert(place.labels->hyper);
  std::vector<std::pair<Placed, bool>> runs;
  for (const Placed& place : placed) {
    runs.emplace_back(place, sets[row_of(*place.labels)].size() > 1);
  }
  return runs;
}

}  // namespace

Pool::Pool(const std::vector<Record>& records, const Wanted& wanted, SelectionRule rule,
           const std::string& norm) {
  const auto norms = norms_by_plan(records, wanted);
  const auto counts = [&](const Placed& place) {
    if (!wanted(*place.labels)) return false;
    const bool choice =
        !norm.empty() && !place.labels->loss.empty() && norms.contains(place.labels->plan);
    return !choice || place.record->spec.norm == norm;
  };
  const std::vector<Placed> placed = placed_runs(records, counts, &contested_);
  has_grid_ = std::any_of(placed.begin(), placed.end(),
                          [](const Placed& place) { return !place.labels->hyper.empty(); });
  for (const Placed& place : placed) all_.push_back(pool_run(place));
  std::vector<Placed> grid;
  for (const auto& [place, choice] : with_choice(placed)) {
    if (choice)
      grid.push_back(place);
    else
      runs_.push_back(pool_run(place));
  }
  Selected selected = select_hyper(grid, rule);
  for (const Placed& place : selected.runs) runs_.push_back(pool_run(place));
  choices_ = std::move(selected.choices);
}

std::vector<const PoolRun*> Pool::find(const PoolQuery& query) const {
  std::vector<const PoolRun*> found;
  for (const PoolRun& run : runs_) {
    if (matches(run, query)) found.push_back(&run);
  }
  return found;
}

bool Pool::undecided(const PoolQuery& query) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const PoolRun& run) { return matches(run, query); });
}

std::vector<std::string> Pool::backbones() const {
  return names(all_, [](const PoolRun& run) { return run.labels->backbone; });
}

std::vector<std::string> Pool::datasets() const {
  return names(all_, [](const PoolRun& run) { return run.labels->dataset; });
}

std::set<std::int64_t> Pool::trials(const PoolQuery& query) const {
  std::set<std::int64_t> trials;
  for (const PoolRun& run : all_) {
    if (matches(run, query)) trials.insert(run.labels->trial);
  }
  return trials;
}

std::vector<std::string> Pool::notes() const {
  std::vector<std::string> notes;
  if (contested_ > 0) {
    notes.push_back(
        fmt::format("{} places have several records: the later ones count.", contested_));
  }
  std::map<std::string, std::set<std::string>> weights;
  bool single = true;
  std::set<std::string> generated;
  std::set<std::string> precisions, builds, libraries;
  std::set<std::int64_t> trials;
  std::set<double> parts;
  for (const PoolRun& run : runs_) {
    const std::string hash = provenance_text(*run.record, "weight_hash");
    if (!hash.empty()) weights[run.record->spec.training.dump()].insert(hash);
    if (is_generated(*run.record)) generated.insert(run.labels->dataset);
    precisions.insert(run.record->spec.precision);
    constexpr std::size_t kShort = 7;
    builds.insert(provenance_text(*run.record, "commit").substr(0, kShort));
    libraries.insert(provenance_text(*run.record, "libtorch"));
    trials.insert(run.labels->trial);
    const double part = spec_number(run.record->spec.protocol, "images").value_or(0);
    if (part > 0) parts.insert(part);
    single = single && run.record->domains.size() <= 1;
  }
  for (const auto& [training, hashes] : weights) {
    if (hashes.size() < 2) continue;
    notes.push_back(fmt::format(
        "Source models of one training plan and seed have {} different weight hashes here: they "
        "were trained more than once.",
        hashes.size()));
    break;
  }
  if (!generated.empty()) {
    notes.push_back(fmt::format(
        "The corruptions of {} are generated by gala, with its own frost textures; they "
        "are not the published arrays.",
        fmt::join(generated, " and ")));
  }
  if (precisions != std::set<std::string>{"float32"} && !precisions.empty()) {
    notes.push_back(
        fmt::format("Precision of convolutions and products: {}.", fmt::join(precisions, " and ")));
  }
  if (builds.size() > 1 || libraries.size() > 1) {
    notes.push_back(fmt::format("Runs of several builds: gala {}; LibTorch {}.",
                                listed(std::move(builds)), listed(std::move(libraries))));
  }
  if (!parts.empty()) {
    notes.push_back(fmt::format("Runs on a part of the data: images={} in their protocol.",
                                fmt::join(parts, " and ")));
  }
  if (single && trials.size() == 1) notes.push_back("One trial: no deviation over trials.");
  std::size_t unfound = 0;
  for (const HyperChoice& choice : choices_) unfound += !choice.found;
  if (unfound > 0) {
    notes.push_back(fmt::format(
        "For {} of {} rows the rule can choose nothing: runs of the grid, or the scores it goes "
        "by, are missing.",
        unfound, choices_.size()));
  }
  return notes;
}

std::set<std::string> Pool::norms() const {
  std::set<std::string> norms;
  for (const PoolRun& run : all_) {
    if (!run.loss.empty()) norms.insert(run.record->spec.norm);
  }
  return norms;
}

std::vector<std::string> norm_choices(const std::vector<Record>& records, const Wanted& wanted) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [plan, norms] : norms_by_plan(records, wanted)) {
    for (const auto& [norm, count] : norms) counts[norm] += count;
  }
  std::vector<std::string> norms;
  for (const auto& [norm, count] : counts) norms.push_back(norm);
  std::stable_sort(norms.begin(), norms.end(), [&](const std::string& a, const std::string& b) {
    return counts[a] > counts[b];
  });
  return norms;
}

namespace {

using Condition = std::tuple<std::string, std::string>;          // backbone, loss
using Target = std::tuple<Condition, std::string, std::string>;  // and data set, environment

/// Means from the inside out: trials, targets, data sets, conditions.
double nested_mean(const std::map<Target, std::vector<double>>& values) {
  std::map<Condition, std::map<std::string, std::vector<double>>> datasets;
  for (const auto& [target, trials] : values) {
    datasets[std::get<0>(target)][std::get<1>(target)].push_back(mean(trials));
  }
  std::vector<double> conditions;
  for (const auto& [condition, sets] : datasets) {
    std::vector<double> means;
    for (const auto& [dataset, targets] : sets) means.push_back(mean(targets));
    conditions.push_back(mean(means));
  }
  return mean(conditions);
}

}  // namespace

Cell mean_cell(const std::vector<const PoolRun*>& runs, const Metric& metric, double scale,
               Coverage* coverage) {
  Cell cell;
  if (runs.empty()) return cell;
  std::map<Target, std::vector<double>> values;
  std::map<std::int64_t, std::map<Target, std::vector<double>>> by_trial;
  for (const PoolRun* run : runs) {
    const std::optional<double> value = metric(*run);
    if (!value) {
      cell.state = Cell::State::kNotApplicable;
      return cell;
    }
    const Labels& labels = *run->labels;
    const Target target{{labels.backbone, run->loss}, labels.dataset, labels.environment};
    values[target].push_back(*value);
    by_trial[labels.trial][target].push_back(*value);
    cell.runs.push_back(run->record);
    cell.places.push_back(run->labels);
    cell.trials.insert(labels.trial);
    if (coverage) {
      coverage->backbones.insert(labels.backbone);
      coverage->losses.insert(run->loss);
      coverage->datasets.insert(labels.dataset);
      coverage->environments[labels.dataset].insert(labels.environment);
    }
  }
  cell.state = Cell::State::kValue;
  cell.value = scale * nested_mean(values);
  std::vector<double> samples;
  for (const auto& [trial, targets] : by_trial) {
    if (targets.size() == values.size()) samples.push_back(scale * nested_mean(targets));
  }
  set_samples(cell, samples);
  const std::string hyper = format_hyper(runs.front()->labels->hyper);
  const bool same = std::all_of(runs.begin(), runs.end(), [&](const PoolRun* run) {
    return run->labels->hyper == runs.front()->labels->hyper;
  });
  cell.hyper = !same ? "(each its own)" : hyper == "-" ? "" : hyper;
  return cell;
}

void set_samples(Cell& cell, const std::vector<double>& samples) {
  cell.samples = static_cast<std::int64_t>(samples.size());
  cell.deviation = sample_deviation(samples);
  constexpr std::int64_t kResamples = 2000;
  cell.interval = bootstrap_interval(samples, 0.95, kResamples);
}

std::string only_note(const std::vector<Share>& shares) {
  std::vector<std::string> parts;
  for (const auto& [have, want] : shares) {
    const bool all = std::includes(have.begin(), have.end(), want.begin(), want.end());
    if (all || have.empty()) continue;
    constexpr std::size_t kNamed = 2;
    parts.push_back(have.size() <= kNamed ? fmt::format("{}", fmt::join(have, " and "))
                                          : fmt::format("{} of {}", have.size(), want.size()));
  }
  return parts.empty() ? "" : fmt::format("{} only", fmt::join(parts, ", "));
}

std::optional<int> lone_block(const Record& record) {
  try {
    return fixed_block(record);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<double> spec_number(const std::string& spec, const std::string& option) {
  try {
    const Spec parsed = Spec::parse(spec);
    const std::string* text = parsed.find(option);
    double number = 0;
    if (text && parse_value(*text, number)) return number;
  } catch (const Error&) {
    // A record with a spec that is none is shown as it is.
  }
  return std::nullopt;
}

std::string provenance_text(const Record& record, const char* name) {
  if (!record.provenance.is_object()) return "";
  const auto found = record.provenance.find(name);
  return found != record.provenance.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string plain_row(const std::string& row) {
  const std::string plain = plain_name(row);
  for (const char* source : {"source", "noadaptation", "sourcemodel"}) {
    if (plain == source) return "erm";
  }
  return plain;
}

}  // namespace gala
