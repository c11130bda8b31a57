#include "gala/protocol/plan.h"

#include <algorithm>
#include <set>

#include "gala/base/input_file.h"
#include "gala/base/options.h"
#include "gala/base/spec.h"
#include "gala/base/toml.h"
#include "gala/protocol/plan_grid.h"

namespace gala {
namespace {

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

std::optional<PlanAxis> read_axis(const std::string& where, const std::string& name,
                                  const toml::node& node, Problems& problems) {
  PlanAxis axis{name, {}, line_of(node), node.is_array()};
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
PlanAxes read_axes(const std::string& where, const toml::table& table, Problems& problems,
                   const std::set<std::string>& others = {}) {
  PlanAxes axes;
  for (const auto& [key, node] : table) {
    if (others.contains(std::string(key.str()))) continue;
    if (auto axis = read_axis(where, std::string(key.str()), node, problems)) {
      axes.push_back(std::move(*axis));
    }
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const PlanAxis& a, const PlanAxis& b) { return a.line < b.line; });
  return axes;
}

/// Puts the row's names over those of the plan.
PlanAxes overlay(PlanAxes axes, const PlanAxes& row) {
  for (const PlanAxis& axis : row) {
    const auto found = std::find_if(axes.begin(), axes.end(),
                                    [&](const PlanAxis& other) { return other.name == axis.name; });
    found == axes.end() ? axes.push_back(axis) : void(*found = axis);
  }
  return axes;
}

/// Reads sections, whose rows the grid lays out.
class PlanReader {
 public:
  PlanReader(ExperimentPlan& plan, Problems& problems)
      : plan_(plan), problems_(problems), grid_(plan, problems) {}

  void read(const toml::table& table);

 private:
  void read_heading(const toml::table& table);
  const toml::table* section(const toml::table& table, const char* name, bool needed);
  std::vector<const toml::table*> tables_of(const toml::table& table, const char* name);
  void read_row(const toml::table& row, const PlanAxes& common, bool only_one);
  std::vector<std::string> read_hyper(const toml::table& table, const std::string& where);
  void check_names(const PlanAxes& axes);

  ExperimentPlan& plan_;
  Problems& problems_;
  PlanGrid grid_;
  std::vector<std::string> hyper_;
  std::map<std::string, std::int64_t> variables_;  ///< names that are no key of a run, with lines
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

void PlanReader::read_row(const toml::table& row, const PlanAxes& common, bool only_one) {
  const auto* given = row.get_as<std::string>("name");
  const std::string name = given ? given->get() : only_one ? plan_.title : "";
  if (name.empty()) {
    const std::string problem =
        row.empty()
            ? "the sections [[row]] are missing, and plan.title, which would name the only row"
            : fmt::format("line {}: row.name {}", line_of(row),
                          row.contains("name") ? "must be a text" : "is missing");
    grid_.say(problem);
  }
  const std::vector<std::string> hyper = read_hyper(row, "row");
  const PlanAxes axes = overlay(common, read_axes("row", row, problems_, {"name", "hyper"}));
  check_names(axes);
  grid_.lay_out(name, axes, hyper);
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
  PlanAxes common;
  if (const toml::table* run = section(table, "run", true)) {
    common = read_axes("run", *run, problems_);
  }
  if (const toml::table* axes = section(table, "axes", false)) {
    common = overlay(std::move(common), read_axes("axes", *axes, problems_));
  }
  const std::vector<const toml::table*> rows = tables_of(table, "row");
  for (const toml::table* one : tables_of(table, "case")) {
    const PlanAxes axes = overlay(common, read_axes("case", *one, problems_));
    for (const toml::table* row : rows) {
      read_row(*row, axes, !table.contains("row"));
      if (problems_.list().size() > kMostProblems) return;
    }
  }
  const std::vector<std::string> names = run_names();
  for (const auto& [name, line] : variables_) {
    if (grid_.refers_to(name)) continue;
    problems_.add(
        fmt::format("line {}: \"{}\" is no key of a run, and nothing refers to it as "
                    "{{{}}}{}",
                    line, name, name, suggestion(name, names)));
  }
}

void PlanReader::check_names(const PlanAxes& axes) {
  const std::vector<std::string> names = run_names();
  for (const PlanAxis& axis : axes) {
    const auto in = [&](const std::vector<std::string>& list) {
      return std::find(list.begin(), list.end(), axis.name) != list.end();
    };
    if (!in(names) && !in(kLabelNames)) variables_.emplace(axis.name, axis.line);
  }
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
