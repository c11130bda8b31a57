#include <fmt/format.h>

#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/text.h"
#include "gala/base/error.h"
#include "gala/data/corruption/corruption_list.h"
#include "gala/data/dataset.h"
#include "gala/data/stream.h"
#include "gala/loss/loss.h"
#include "gala/loss/sample_rule.h"
#include "gala/method/method_parts.h"
#include "gala/method/recipe.h"
#include "gala/model/model.h"
#include "gala/optim/optimizer.h"
#include "gala/protocol/protocol.h"
#include "gala/select/selector.h"
#include "gala/step/guard.h"
#include "gala/view/view.h"

namespace gala {
namespace {

struct Kind {
  std::string name;   ///< as asked for: "losses"
  std::string usage;  ///< where such a spec is written
  std::function<std::vector<MethodInfo>()> describe;
};

std::vector<MethodInfo> describe_guards() {
  return {
      {"off", "nothing is watched", {}},
      {"warn", "collapse is said, and changes no number", describe_options<GuardOptions>()},
      {"stop", "the parameters stay as they are from then on", describe_options<GuardOptions>()},
      {"rollback", "back to the source or to the last healthy parameters",
       describe_options<GuardOptions>()}};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"methods", "--method", [] { return describe_recipes(); }},
      {"losses", "--loss", [] { return describe_registry<Loss>(loss_registry()); }},
      {"samples", "--samples",
       [] { return describe_registry<SampleRule>(sample_rule_registry()); }},
      {"stores", "--store", [] { return describe_registry<Store>(store_registry()); }},
      {"selectors", "--select",
       [] { return describe_registry<Selector, std::uint64_t>(selector_registry()); }},
      {"optimizers", "--optimizer",
       [] { return describe_registry<Optimizer>(optimizer_registry()); }},
      {"views", "--view", [] { return describe_registry<View>(view_registry()); }},
      {"teachers", "--teacher", [] { return describe_registry<Teacher>(teacher_registry()); }},
      {"perturbations", "--perturb",
       [] { return describe_registry<Perturbation>(perturbation_registry()); }},
      {"penalties", "--penalty", [] { return describe_registry<Penalty>(penalty_registry()); }},
      {"drifts", "--drift", [] { return describe_registry<Drift>(drift_registry()); }},
      {"resets", "--reset", [] { return describe_registry<ResetRule>(reset_rule_registry()); }},
      {"after_step", "--after-step",
       [] { return describe_registry<AfterStep>(after_step_registry()); }},
      {"readouts", "--readout", [] { return describe_registry<Readout>(readout_registry()); }},
      {"models", "--model", [] { return describe_registry<Model>(model_registry()); }},
      {"norms", "--norm", [] { return describe_norm_modes(); }},
      {"guards", "--guard", [] { return describe_guards(); }},
      {"datasets", "--data", [] { return describe_registry<DataSource>(data_registry()); }},
      {"streams", "--stream",
       [] {
         return describe_registry<Stream, const DataSource&, std::uint64_t>(stream_registry());
       }},
      {"protocols", "protocol = in a plan of `gala run`",
       [] { return describe_registry<Protocol>(protocol_registry()); }},
      {"corruptions", "--corruption", [] { return describe_corruptions(); }},
  };
  return all;
}

/// A word of the left column; where it is too long, the rest begins on the next line.
std::string in_column(std::size_t indent, std::string_view text, std::size_t column) {
  std::string line = std::string(indent, ' ') + std::string(text);
  if (line.size() >= column) line += "\n";
  const std::size_t used = line.ends_with('\n') ? 0 : line.size();
  return line + std::string(column - used, ' ');
}

void print_text(const Kind& kind) {
  constexpr std::size_t kColumn = 28;
  const std::size_t width = line_width();
  std::cout << kind.name << " (" << kind.usage << ")\n";
  for (const MethodInfo& method : kind.describe()) {
    std::cout << in_column(2, method.name, kColumn)
              << wrap(std::string(method.summary), width, kColumn) << '\n';
    for (const OptionInfo& option : method.options) {
      std::cout << in_column(4, option.name + "=" + option.default_value, kColumn)
                << wrap(option.help + " [" + option.type + "]", width, kColumn) << '\n';
    }
  }
  std::cout << '\n';
}

nlohmann::ordered_json to_json(const Kind& kind) {
  auto methods = nlohmann::ordered_json::array();
  for (const MethodInfo& method : kind.describe()) {
    auto options = nlohmann::ordered_json::array();
    for (const OptionInfo& option : method.options) {
      options.push_back({{"name", option.name},
                         {"type", option.type},
                         {"default", option.default_value},
                         {"help", option.help}});
    }
    methods.push_back({{"name", method.name}, {"summary", method.summary}, {"options", options}});
  }
  return methods;
}

}  // namespace

void add_list_command(CLI::App& program) {
  struct Flags {
    std::string kind;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      program.add_subcommand("list", "What can be named in a spec, and its options");
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  command->add_option("kind", flags->kind, fmt::format("{} [all of them]", fmt::join(names, ", ")))
      ->type_name("");
  command->add_flag("--json", flags->json, "as JSON");
  command->footer(
      "An option is shown as name=default [what it may be].\n\n"
      "Examples:\n  gala list selectors\n  gala list --json");
  command->callback([flags, names] {
    if (!flags->kind.empty() && std::find(names.begin(), names.end(), flags->kind) == names.end()) {
      fail<ConfigError>("unknown kind \"{}\"{}", flags->kind, suggestion(flags->kind, names));
    }
    nlohmann::ordered_json json;
    for (const Kind& kind : kinds()) {
      if (!flags->kind.empty() && kind.name != flags->kind) continue;
      if (flags->json) {
        json[kind.name] = to_json(kind);
      } else {
        print_text(kind);
      }
    }
    if (flags->json) std::cout << json.dump(2) << '\n';
  });
}

}  // namespace gala
