#include "gala/train/plan_parameters.h"

#include <algorithm>
#include <sstream>

namespace gala {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_plain(const toml::node& node) {
  return node.is_string() || node.is_integer() || node.is_floating_point() || node.is_boolean();
}

/// A value without quotes or TOML's signs around it.
std::string plain_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  std::ostringstream out;
  node.visit([&](const auto& typed) { out << typed; });
  return out.str();
}

std::vector<std::string> keys_of(const toml::table& table) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : table) keys.emplace_back(key.str());
  return keys;
}

/// Puts a value under a key: a number or truth value where the text is one, else the text.
void assign(toml::table& table, const std::string& key, const std::string& text) {
  std::int64_t integer = 0;
  double number = 0;
  if (parse_value(text, integer)) {
    table.insert_or_assign(key, integer);
  } else if (parse_value(text, number)) {
    table.insert_or_assign(key, number);
  } else if (text == "true" || text == "false") {
    table.insert_or_assign(key, text == "true");
  } else {
    table.insert_or_assign(key, text);
  }
}

void set_parameter(toml::table& parameters, const PlanSetting& setting, Problems& problems) {
  const toml::node* before = parameters.get(setting.name);
  if (!before) {
    const std::vector<std::string> known = keys_of(parameters);
    return problems.add(
        fmt::format("--set: the plan has no parameter \"{}\"{}", setting.name,
                    known.empty() ? " (it has none)" : suggestion(setting.name, known)));
  }
  if (before->is_string()) {
    parameters.insert_or_assign(setting.name, setting.value);
    return;
  }
  const auto type = before->type();
  const std::string old = shown(*before);
  toml::table fresh;
  assign(fresh, setting.name, setting.value);
  if (fresh.get(setting.name)->type() != type) {
    return problems.add(
        fmt::format("--set: parameter {} cannot be \"{}\" (expected a value such as {})",
                    setting.name, setting.value, old));
  }
  assign(parameters, setting.name, setting.value);
}

void set_key(toml::table& plan, const PlanSetting& setting, Problems& problems) {
  const std::size_t dot = setting.name.find('.');
  const std::string section = setting.name.substr(0, dot), key = setting.name.substr(dot + 1);
  if (key.empty() || key.find('.') != std::string::npos) {
    return problems.add(fmt::format("--set: \"{}\" is not section.key", setting.name));
  }
  if (!plan.get(section)) plan.insert(section, toml::table{});
  if (toml::table* table = plan.get(section)->as_table()) assign(*table, key, setting.value);
}

/// The parameters, each a plain value.
toml::table take_parameters(const toml::table& plan, Problems& problems) {
  toml::table parameters;
  const toml::node* node = plan.get("parameters");
  if (!node) return parameters;
  if (!node->is_table()) {
    problems.add(place_of(*node) + "parameters must be a section: [parameters]");
    return parameters;
  }
  for (const auto& [key, value] : *node->as_table()) {
    const std::string name(key.str());
    if (is_plain(value) && std::all_of(name.begin(), name.end(), is_name_character)) {
      parameters.insert(name, value);
    } else {
      problems.add(
          fmt::format("{}parameters.{} must be a text, a number, true or false, with a name "
                      "of letters, digits and _",
                      place_of(value), name));
    }
  }
  return parameters;
}

/// The text with every "{name}" replaced; braces around anything but a name stay.
std::string filled_in(const std::string& text, const toml::table& parameters,
                      std::string_view where, Problems& problems) {
  // A few references to a long parameter could stand for any number of characters.
  constexpr std::size_t kLongest = 10'000;
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t open = text.find('{', at);
    const std::size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) break;
    const std::string name = text.substr(open + 1, close - open - 1);
    result += text.substr(at, open - at);
    at = close + 1;
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_character)) {
      result += text.substr(open, at - open);
    } else if (const toml::node* value = parameters.get(name)) {
      result += plain_text(*value);
    } else {
      problems.add(fmt::format("{}the plan has no parameter \"{}\"{}", where, name,
                               suggestion(name, keys_of(parameters))));
    }
    if (result.size() > kLongest) {
      problems.add(fmt::format("{}a value has more than {} characters", where, kLongest));
      return "";
    }
  }
  return result + text.substr(at);
}

void fill_in_section(toml::table& section, const toml::table& parameters, Problems& problems) {
  for (const std::string& key : keys_of(section)) {
    toml::node& node = *section.get(key);
    auto* text = node.as_string();
    if (!text) continue;
    const std::string written = text->get();
    const toml::node* whole = written.size() > 2 && written.front() == '{' && written.back() == '}'
                                  ? parameters.get(written.substr(1, written.size() - 2))
                                  : nullptr;
    if (whole && !whole->is_string()) {
      section.insert_or_assign(key, *whole);
    } else {
      text->get() = filled_in(written, parameters, place_of(node), problems);
    }
  }
}

}  // namespace

std::string place_of(const toml::node& node) {
  const auto line = node.source().begin.line;
  return line > 0 ? fmt::format("line {}: ", line) : std::string();
}

std::string shown(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& typed) { out << typed; });
  std::string text = out.str();
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest) text.replace(kLongest, text.size(), "...");
  return text;
}

PlanSetting PlanSetting::parse(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    fail<ConfigError>("\"{}\" is not NAME=VALUE", text);
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

std::map<std::string, std::string> fill_in_parameters(toml::table& plan,
                                                      std::span<const PlanSetting> settings,
                                                      Problems& problems) {
  toml::table parameters = take_parameters(plan, problems);
  for (const PlanSetting& setting : settings) {
    if (setting.name.find('.') == std::string::npos) set_parameter(parameters, setting, problems);
  }
  for (const char* section : {"model", "data", "train", "output"}) {
    toml::node* node = plan.get(section);
    if (node && node->is_table()) fill_in_section(*node->as_table(), parameters, problems);
  }
  std::map<std::string, std::string> values;
  for (const PlanSetting& setting : settings) {
    if (setting.name.find('.') == std::string::npos) continue;
    set_key(plan, setting, problems);
    values.insert_or_assign(setting.name, setting.value);
  }
  for (const auto& [key, value] : parameters) {
    values.emplace(std::string(key.str()), plain_text(value));
  }
  return values;
}

}  // namespace gala
