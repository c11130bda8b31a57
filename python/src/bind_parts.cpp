// Names, options and defaults, as the registries have them: Python writes none of them a second time.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "gala/loss/loss.h"
#include "gala/loss/ranges.h"
#include "gala/loss/sample_rule.h"
#include "gala/method/after_step.h"
#include "gala/method/drift.h"
#include "gala/method/penalty.h"
#include "gala/method/perturbation.h"
#include "gala/method/probe.h"
#include "gala/method/ranges.h"
#include "gala/method/readout.h"
#include "gala/method/recipe.h"
#include "gala/method/reset_rule.h"
#include "gala/method/store.h"
#include "gala/method/teacher.h"
#include "gala/model/norm.h"
#include "gala/optim/optimizer.h"
#include "gala/select/selector.h"
#include "gala/view/ranges.h"
#include "gala/view/view.h"
#include "python/src/bind.h"

namespace nb = nanobind;

namespace gala::python {
namespace {

/// The parts of one kind: the option that names them, the word for them in messages, the list.
struct Kind {
  std::string_view option;
  std::string_view word;
  std::vector<MethodInfo> (*list)();
};

template <auto kRegistry>
std::vector<MethodInfo> listed() {
  return describe_registry(kRegistry());
}

const Kind kKinds[] = {
    {"loss", Loss::kKind, listed<loss_registry>},
    {"samples", SampleRule::kKind, listed<sample_rule_registry>},
    {"store", Store::kKind, listed<store_registry>},
    {"select", Selector::kKind, listed<selector_registry>},
    {"optimizer", Optimizer::kKind, listed<optimizer_registry>},
    {"view", View::kKind, listed<view_registry>},
    {"teacher", Teacher::kKind, listed<teacher_registry>},
    {"perturb", Perturbation::kKind, listed<perturbation_registry>},
    {"penalty", Penalty::kKind, listed<penalty_registry>},
    {"drift", Drift::kKind, listed<drift_registry>},
    {"after_step", AfterStep::kKind, listed<after_step_registry>},
    {"reset", ResetRule::kKind, listed<reset_rule_registry>},
    {"readout", Readout::kKind, listed<readout_registry>},
    {"probe", Probe::kKind, listed<probe_registry>},
    {"norm", "norm mode", describe_norm_modes},
    {"method", "method", describe_recipes},
};

const Kind& kind_of(const std::string& option) {
  std::vector<std::string> known;
  for (const Kind& kind : kKinds) {
    if (kind.option == option) return kind;
    known.emplace_back(kind.option);
  }
  fail<ConfigError>("unknown kind of part \"{}\"{}", option, suggestion(option, known));
}

nb::str text_of(std::string_view text) {
  return nb::str(text.data(), text.size());
}

/// A value of its type from its text, which was checked.
nb::object value_of(const std::string& text, const std::string& type) {
  const auto as = [&]<class T>(T value) {
    parse_value(text, value);
    return nb::cast(value);
  };
  if (type == accepted_values<double>()) return as(double{});
  if (type == accepted_values<std::int64_t>()) return as(std::int64_t{});
  if (type == accepted_values<bool>()) return as(bool{});
  if (type == accepted_values<std::vector<std::string>>()) return as(std::vector<std::string>{});
  return nb::cast(text);
}

/// "yes" for True, "0.5" for 0.5, "a,b" for a list: Python's values as a user of specs writes them.
std::string text_of_value(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return format_value(nb::cast<bool>(value));
  if (nb::isinstance<nb::int_>(value)) return format_value(nb::cast<std::int64_t>(value));
  if (nb::isinstance<nb::float_>(value)) return format_value(nb::cast<double>(value));
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    return format_value(nb::cast<std::vector<std::string>>(value));
  }
  return nb::cast<std::string>(nb::str(value));
}

/// Options that take one of a few words: registries check those when they make a part.
void check_words(const std::string& text, const OptionInfo& option, const Spec& spec,
                 std::string_view word) {
  const bool words = option.type.find('|') != std::string::npos;
  if (!words || option.type == accepted_values<bool>()) return;
  const std::string all = "|" + option.type + "|";
  if (all.find("|" + text + "|") == std::string::npos) {
    fail<ConfigError>("{} {}: option {} cannot be \"{}\" (expected {})", word, spec.name,
                      option.name, text, option.type);
  }
}

/// As the parts' constructors do, which are not here.
void check_number(const std::string& text, const OptionInfo& option, const Spec& spec,
                  std::string_view word) {
  double value = 0;
  const bool number =
      option.type == accepted_values<double>() || option.type == accepted_values<std::int64_t>();
  if (!number || !parse_value(text, value)) return;
  const std::string part = fmt::format("{} {}", word, spec.name);
  for (const auto ranges : {loss_ranges(), method_ranges(), view_ranges()}) {
    check_range(ranges, part, option.name, value, text);
  }
}

/// (name, {option: value}) with every option of the part.
nb::tuple part_of(const Spec& given, const Kind& kind) {
  const std::vector<MethodInfo> known = kind.list();
  const Spec spec = written_out(given, known, kind.word);
  nb::dict options;
  for (const MethodInfo& info : known) {
    if (info.name != spec.name) continue;
    for (const OptionInfo& option : info.options) {
      const std::string* text = spec.find(option.name);
      const std::string value = text ? *text : option.default_value;
      check_words(value, option, spec, kind.word);
      check_number(value, option, spec, kind.word);
      options[text_of(option.name)] = value_of(value, option.type);
    }
  }
  return nb::make_tuple(spec.name, options);
}

nb::list list_parts(const std::string& option) {
  nb::list parts;
  for (const MethodInfo& info : kind_of(option).list()) {
    nb::list options;
    for (const OptionInfo& each : info.options) {
      options.append(nb::make_tuple(each.name, each.type, each.default_value, each.help));
    }
    parts.append(nb::make_tuple(text_of(info.name), text_of(info.summary), options));
  }
  return parts;
}

nb::list parse_parts(const std::string& option, const std::string& text) {
  const Kind& kind = kind_of(option);
  nb::list parts;
  for (const Spec& spec : parse_specs(text)) parts.append(part_of(spec, kind));
  return parts;
}

/// Every option of a method under its name, the recipe's where there is one, the given ones over them.
nb::dict method_options(const std::string& method, const nb::dict& given) {
  MethodOptions options = method.empty() ? MethodOptions{} : recipe(method);
  std::vector<std::string> known;
  MethodOptions::visit([&](const char* name, auto, const char*) { known.emplace_back(name); });
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (!set_option(options, name, text_of_value(value))) {
      fail<ConfigError>("unknown option \"{}\"{}", name, suggestion(name, known));
    }
  }
  check_ranges(method_ranges(), "", options);
  nb::dict all;
  MethodOptions::visit([&]<class T>(const char* name, T MethodOptions::*member, const char*) {
    all[name] = value_of(format_value(options.*member), accepted_values<T>());
  });
  return all;
}

nb::list describe_method_options() {
  nb::list options;
  for (const OptionInfo& each : describe_options<MethodOptions>()) {
    options.append(nb::make_tuple(each.name, each.type, each.default_value, each.help));
  }
  return options;
}

}  // namespace

void bind_parts(nb::module_& m) {
  m.def("canonical_spec", [](const std::string& text) { return Spec::parse(text).to_string(); });
  m.def("kinds", [] {
    nb::list kinds;
    for (const Kind& kind : kKinds) kinds.append(text_of(kind.option));
    return kinds;
  });
  m.def("list_parts", list_parts);
  m.def("parse_parts", parse_parts);
  m.def("method_options", method_options);
  m.def("describe_method_options", describe_method_options);
  m.def("parse_norm", [](const std::string& text) {
    const NormMode mode = NormMode::parse(text);
    return nb::make_tuple(Spec::parse(text).name, mode.weight, mode.momentum, mode.gradient,
                          mode.horizon, mode.tolerance, mode.common);
  });
}

}  // namespace gala::python
