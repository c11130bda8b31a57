#include "gala/protocol/plan_grid.h"

#include <algorithm>

#include "gala/base/options.h"

namespace gala {
namespace {

constexpr std::size_t kMostRuns = 100'000;
/// Characters of a filled-in value, and of those of all runs: a few values that refer to each other could
/// stand for any number.
constexpr std::size_t kLongestValue = 10'000, kLongestValues = 100'000'000;

}  // namespace

void PlanGrid::say(const std::string& problem) {
  if (said_.insert(problem).second) problems_.add(problem);
}

/// Replaces {name} by its value; `unknown` takes the names that have none.
std::string PlanGrid::fill_in(const std::string& text, const Values& values,
                              std::set<std::string>& unknown) {
  std::string filled;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = text[i] == '{' ? text.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      filled += text[i++];
      continue;
    }
    const std::string name = text.substr(i + 1, end - i - 1);
    const auto found = values.find(name);
    if (found == values.end()) {
      unknown.insert(name);
    } else {
      used_.insert(name);
      filled += found->second;
    }
    if (filled.size() > kLongestValue) return filled;
    i = end + 1;
  }
  return filled;
}

void PlanGrid::lay_out(const std::string& row, const PlanAxes& axes,
                       const std::vector<std::string>& hyper) {
  std::size_t count = 1;
  for (const PlanAxis& axis : axes) {
    count = std::min(count * std::min(axis.values.size(), kMostRuns + 1), kMostRuns + 1);
  }
  if (count > kMostRuns || plan_.runs.size() + count > kMostRuns) {
    return problems_.add(fmt::format("row {}: more than {} runs", row, kMostRuns));
  }
  for (std::size_t number = 0; number < count; ++number) {
    if (characters_ > kLongestValues) {
      return problems_.add(
          fmt::format("row {}: the values of its runs and those before have more "
                      "than {} characters",
                      row, kLongestValues));
    }
    Values values;
    std::size_t rest = number;  // the last axis turns fastest
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      values[axis->name] = axis->values[rest % axis->values.size()];
      rest /= axis->values.size();
    }
    add_run(row, axes, values, hyper);
  }
}

void PlanGrid::fill_in_values(const std::string& row, const Values& values, PlannedRun& run) {
  std::set<std::string> unknown;
  run.labels.row = fill_in(row, values, unknown);
  if (run.labels.row.size() > kLongestValue) {
    say(fmt::format("a row's name has more than {} characters", kLongestValue));
    run.labels.row.clear();
  }
  for (const auto& [name, text] : values) {
    // A value may refer to one that refers to another, though not in a circle.
    std::string filled = text;
    constexpr int kDeepest = 8;
    for (int depth = 0; depth < kDeepest && filled.find('{') != std::string::npos &&
                        filled.size() <= kLongestValue;
         ++depth) {
      filled = fill_in(filled, values, unknown);
    }
    characters_ += filled.size();
    if (filled.size() > kLongestValue) {
      say(fmt::format("row {}: {} has more than {} characters", row, name, kLongestValue));
      filled.clear();
    }
    if (filled.find('{') != std::string::npos && filled.find('}') != std::string::npos) {
      say(fmt::format("row {}: {} refers to itself, or through more than {} others", row, name,
                      kDeepest));
    }
    run.values[name] = filled;
  }
  for (const std::string& name : unknown) {
    say(fmt::format("row {}: {{{}}} refers to nothing in the plan", row, name));
  }
}

void PlanGrid::read_request(const std::string& row, PlannedRun& run) {
  RunRequest::visit([&]<class T>(const char* name, T RunRequest::*member, const char*) {
    const auto found = run.values.find(name);
    if (found == run.values.end() || parse_value(found->second, run.request.*member)) return;
    say(fmt::format("row {}: {} cannot be \"{}\" (expected {})", row, name, found->second,
                    accepted_values<T>()));
  });
  MethodOptions method;
  for (const auto& [name, text] : run.values) {
    try {
      if (!text.empty() && set_option(method, name, text)) run.request.method[name] = text;
    } catch (const ConfigError& error) {
      say(fmt::format("row {}: {}", row, error.what()));
    }
  }
  run.request.seed = method.seed;
}

void PlanGrid::read_labels(const std::string& row, const std::vector<std::string>& hyper,
                           PlannedRun& run) {
  const auto label = [&](const char* name) {
    const auto found = run.values.find(name);
    return found == run.values.end() ? std::string() : found->second;
  };
  run.labels.group = label("group");
  run.labels.dataset = label("dataset");
  run.labels.backbone = label("backbone");
  if (const std::string trial = label("trial");
      !trial.empty() && !parse_value(trial, run.labels.trial)) {
    say(fmt::format("row {}: trial cannot be \"{}\" (expected integer)", row, trial));
  }
  for (const std::string& name : hyper) {
    const auto found = run.values.find(name);
    if (found == run.values.end()) {
      say(fmt::format("row {}: the hyper-parameter \"{}\" is not in the plan", row, name));
    } else {
      run.labels.hyper[name] = found->second;
    }
  }
}

void PlanGrid::add_run(const std::string& row, const PlanAxes& axes, const Values& values,
                       const std::vector<std::string>& hyper) {
  PlannedRun run;
  run.labels.plan = plan_.name;
  fill_in_values(row, values, run);
  read_request(row, run);
  read_labels(row, hyper, run);
  run.values["row"] = run.labels.row;
  for (const PlanAxis& axis : axes) {
    if (axis.varies && axis.values.size() > 1) run.axes.push_back(axis.name);
  }
  plan_.runs.push_back(std::move(run));
}

}  // namespace gala
