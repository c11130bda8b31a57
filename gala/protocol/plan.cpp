#include "gala/protocol/plan.h"

#include <algorithm>
#include <functional>
#include <set>

#include "gala/base/input_file.h"
#include "gala/base/options.h"
#include "gala/base/spec.h"
#include "gala/base/toml.h"

namespace gala {
namespace {

/// A name of the plan and the values it takes.
struct Axis {
  std::string name;
  std::vector<std::string> values;
  std::int64_t line = 0;
  bool varies = false;
};
using Axes = std::vector<Axis>;
using Values = std::map<std::string, std::string>;

constexpr std::size_t kMostRuns = 100'000;
/// Characters of a filled-in value, and of those of all runs: a few values that refer to each other could
/// stand for any number.
constexpr std::size_t kLongestValue = 10'000, kLongestValues = 100'000'000;
/// What is wrong with a plan is told so often.
constexpr std::size_t kMostProblems = 1000;
/// Names that only place a run in a table.
const std::vector<std::string> kLabelNames = {"group", "dataset", "backbone", "trial"};

std::int64_t line_of(const toml::node& node) {
  return static_cast<std::int64_t>(node.source().begin.line);
}

std::optional<std::string> to_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return format_value(number->get());
  if (const auto* answer = node.as_boolean()) return format_value(answer->get());
  return std::nullopt;
}

std::vector<std::string> run_names() {
  std::vector<std::string> names;
  for (const OptionInfo& option : describe_options<RunRequest>()) names.push_back(option.name);
  for (const OptionInfo& option : describe_options<MethodOptions>()) names.push_back(option.name);
  return names;
}

std::optional<Axis> read_axis(const std::string& where, const std::string& name,
                              const toml::node& node, Problems& problems) {
  Axis axis{name, {}, line_of(node), node.is_array()};
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) {
      if (const auto text = to_text(item)) axis.values.push_back(*text);
    }
    if (axis.values.empty() || axis.values.size() != list->size()) {
      problems.add(fmt::format("line {}: {}.{} must be a list of texts, numbers or true and false",
                               axis.line, where, name));
      return std::nullopt;
    }
  } else if (const auto text = to_text(node)) {
    axis.values.push_back(*text);
  } else {
    problems.add(
        fmt::format("line {}: {}.{} must be a text, a number, true, false, or a list of "
                    "them",
                    axis.line, where, name));
    return std::nullopt;
  }
  return axis;
}

/// The section's names in the order of the file, but for those that are no axes.
Axes read_axes(const std::string& where, const toml::table& table, Problems& problems,
               const std::set<std::string>& others = {}) {
  Axes axes;
  for (const auto& [key, node] : table) {
    if (others.contains(std::string(key.str()))) continue;
    if (auto axis = read_axis(where, std::string(key.str()), node, problems)) {
      axes.push_back(std::move(*axis));
    }
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.line < b.line; });
  return axes;
}

/// Puts the row's names over those of the plan.
Axes overlay(Axes axes, const Axes& row) {
  for (const Axis& axis : row) {
    const auto found = std::find_if(axes.begin(), axes.end(),
                                    [&](const Axis& other) { return other.name == axis.name; });
    found == axes.end() ? axes.push_back(axis) : void(*found = axis);
  }
  return axes;
}

/// Replaces {name} by its value. `used` takes the names.
std::string fill_in(const std::string& text, const Values& values, std::set<std::string>& used,
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
      used.insert(name);
      filled += found->second;
    }
    if (filled.size() > kLongestValue) return filled;
    i = end + 1;
  }
  return filled;
}

/// Reads sections and lays out the grid.
class PlanReader {
 public:
  PlanReader(ExperimentPlan& plan, Problems& problems) : plan_(plan), problems_(problems) {}

  void read(const toml::table& table);

 private:
  void read_heading(const toml::table& table);
  const toml::table* section(const toml::table& table, const char* name, bool needed);
  std::vector<const toml::table*> tables_of(const toml::table& table, const char* name);
  void read_row(const toml::table& row, const Axes& common, bool only_one);
  void lay_out(const std::string& row, const Axes& axes, const std::vector<std::string>& hyper);
  void add_run(const std::string& row, const Axes& axes, const Values& values,
               const std::vector<std::string>& hyper);
  std::vector<std::string> read_hyper(const toml::table& table, const std::string& where);
  void check_names(const Axes& axes);

  ExperimentPlan& plan_;
  Problems& problems_;
  std::vector<std::string> hyper_;
  std::set<std::string> used_;                     ///< names that something refers to
  std::map<std::string, std::int64_t> variables_;  ///< names that are no key of a run, with lines
  std::set<std::string> said_;                     ///< problems of runs, each once
  std::size_t characters_ = 0;                     ///< of the values of all runs
};

const toml::table* PlanReader::section(const toml::table& table, const char* name, bool needed) {
  const toml::node* node = table.get(name);
  if (!node && needed) problems_.add(fmt::format("the section [{}] is missing", name));
  if (node && !node->is_table()) {
    problems_.add(fmt::format("line {}: {} must be a section: [{}]", line_of(*node), name, name));
  }
  return node ? node->as_table() : nullptr;
}

std::vector<std::string> PlanReader::read_hyper(const toml::table& table,
                                                const std::string& where) {
  const toml::node* node = table.get("hyper");
  if (!node) return hyper_;
  if (node->is_array() && node->as_array()->empty()) return {};
  const auto axis = read_axis(where, "hyper", *node, problems_);
  return axis ? axis->values : hyper_;
}

void PlanReader::read_heading(const toml::table& table) {
  const toml::table* heading = section(table, "plan", /*needed=*/true);
  if (!heading) return;
  const std::vector<std::string> known = {"name", "title", "hyper"};
  for (const auto& [key, node] : *heading) {
    const std::string name(key.str());
    if (name == "hyper") continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      problems_.add(fmt::format("line {}: [plan] has no key \"{}\"{}", line_of(node), name,
                                suggestion(name, known)));
    } else if (!node.is_string()) {
      problems_.add(fmt::format("line {}: plan.{} must be a text", line_of(node), name));
    }
  }
  plan_.name = heading->get_as<std::string>("name") ? **heading->get_as<std::string>("name") : "";
  plan_.title =
      heading->get_as<std::string>("title") ? **heading->get_as<std::string>("title") : "";
  if (plan_.name.empty()) problems_.add("plan.name is missing");
  hyper_ = read_hyper(*heading, "plan");
}

/// The tables of [[row]] or [[case]]; a single empty one when there are none.
std::vector<const toml::table*> PlanReader::tables_of(const toml::table& table, const char* name) {
  static const toml::table kEmpty;
  const toml::node* node = table.get(name);
  std::vector<const toml::table*> tables;
  if (node && !node->is_array_of_tables()) {
    problems_.add(fmt::format("line {}: {} must be sections: [[{}]]", line_of(*node), name, name));
  } else if (node) {
    for (const toml::node& item : *node->as_array()) tables.push_back(item.as_table());
  }
  if (tables.empty()) tables.push_back(&kEmpty);
  return tables;
}

void PlanReader::read_row(const toml::table& row, const Axes& common, bool only_one) {
  const auto* given = row.get_as<std::string>("name");
  const std::string name = given ? given->get() : only_one ? plan_.title : "";
  if (name.empty()) {
    const std::string problem =
        row.empty()
            ? "the sections [[row]] are missing, and plan.title, which would name the only row"
            : fmt::format("line {}: row.name {}", line_of(row),
                          row.contains("name") ? "must be a text" : "is missing");
    if (said_.insert(problem).second) problems_.add(problem);
  }
  const std::vector<std::string> hyper = read_hyper(row, "row");
  const Axes axes = overlay(common, read_axes("row", row, problems_, {"name", "hyper"}));
  check_names(axes);
  lay_out(name, axes, hyper);
}

void PlanReader::read(const toml::table& table) {
  const std::vector<std::string> known = {"plan", "run", "axes", "case", "row"};
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    problems_.add(fmt::format("line {}: a plan has no {} \"{}\"{}", line_of(node),
                              node.is_table() ? "section" : "key", name, suggestion(name, known)));
  }
  read_heading(table);
  // A plan of nothing but a heading stands for a figure that needs no runs.
  if (table.size() == 1 && table.contains("plan")) return;
  Axes common;
  if (const toml::table* run = section(table, "run", true)) {
    common = read_axes("run", *run, problems_);
  }
  if (const toml::table* axes = section(table, "axes", false)) {
    common = overlay(std::move(common), read_axes("axes", *axes, problems_));
  }
  const std::vector<const toml::table*> rows = tables_of(table, "row");
  for (const toml::table* one : tables_of(table, "case")) {
    const Axes axes = overlay(common, read_axes("case", *one, problems_));
    for (const toml::table* row : rows) {
      read_row(*row, axes, !table.contains("row"));
      if (problems_.list().size() > kMostProblems) return;
    }
  }
  const std::vector<std::string> names = run_names();
  for (const auto& [name, line] : variables_) {
    if (used_.contains(name)) continue;
    problems_.add(
        fmt::format("line {}: \"{}\" is no key of a run, and nothing refers to it as "
                    "{{{}}}{}",
                    line, name, name, suggestion(name, names)));
  }
}

void PlanReader::check_names(const Axes& axes) {
  const std::vector<std::string> names = run_names();
  for (const Axis& axis : axes) {
    const auto in = [&](const std::vector<std::string>& list) {
      return std::find(list.begin(), list.end(), axis.name) != list.end();
    };
    if (!in(names) && !in(kLabelNames)) variables_.emplace(axis.name, axis.line);
  }
}

void PlanReader::lay_out(const std::string& row, const Axes& axes,
                         const std::vector<std::string>& hyper) {
  std::size_t count = 1;
  for (const Axis& axis : axes) {
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

void PlanReader::add_run(const std::string& row, const Axes& axes, const Values& values,
                         const std::vector<std::string>& hyper) {
  const auto say = [&](const std::string& problem) {
    if (said_.insert(problem).second) problems_.add(problem);
  };
  PlannedRun run;
  run.labels.plan = plan_.name;
  std::set<std::string> unknown;
  run.labels.row = fill_in(row, values, used_, unknown);
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
      filled = fill_in(filled, values, used_, unknown);
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
  run.values["row"] = run.labels.row;
  for (const Axis& axis : axes) {
    if (axis.varies && axis.values.size() > 1) run.axes.push_back(axis.name);
  }
  plan_.runs.push_back(std::move(run));
}

}  // namespace

std::string PlannedRun::describe() const {
  std::string text = labels.group.empty() ? labels.row : labels.group + ": " + labels.row;
  for (const std::string& name : axes) {
    if (name != "group") text += fmt::format(", {}={}", name, values.at(name));
  }
  return text;
}

ExperimentPlan parse_plan(const std::string& text, const std::filesystem::path& path,
                          Problems& problems) {
  ExperimentPlan plan;
  plan.path = path;
  try {
    PlanReader(plan, problems).read(toml::parse(std::string_view(text)));
  } catch (const toml::parse_error& error) {
    problems.add(fmt::format("line {}: {}", error.source().begin.line, error.description()));
  } catch (const Error& error) {
    problems.add(error.what());
  }
  return plan;
}

ExperimentPlan read_plan(const std::filesystem::path& path, Problems& problems) {
  return parse_plan(read_text(path), path, problems);
}

void keep_only(ExperimentPlan& plan,
               const std::vector<std::pair<std::string, std::string>>& conditions) {
  std::map<std::string, std::set<std::string>> wanted;
  for (const auto& [name, value] : conditions) {
    std::set<std::string> values;
    std::set<std::string> names;
    for (const PlannedRun& run : plan.runs) {
      for (const auto& [key, text] : run.values) names.insert(key);
      if (const auto found = run.values.find(name); found != run.values.end()) {
        values.insert(found->second);
      }
    }
    if (values.empty()) {
      fail<ConfigError>("{}={}: the plan has no \"{}\"{}", name, value, name,
                        suggestion(name, {names.begin(), names.end()}));
    }
    if (!values.contains(value)) {
      fail<ConfigError>("{}={}: no run has this value{}", name, value,
                        suggestion(value, {values.begin(), values.end()}));
    }
    wanted[name].insert(value);
  }
  std::erase_if(plan.runs, [&](const PlannedRun& run) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const auto& condition) {
      const auto found = run.values.find(condition.first);
      return found == run.values.end() || !condition.second.contains(found->second);
    });
  });
}

}  // namespace gala
