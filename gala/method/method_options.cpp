#include "gala/method/method_options.h"

#include <nlohmann/json.hpp>

#include "gala/base/error.h"

namespace gala {
namespace {

/// Options that the first records do not have.
constexpr std::string_view kAddedLater[] = {
    "after_step", "answer", "drift",       "penalty", "perturb", "readout", "reset",
    "samples",    "shadow", "source_data", "store",   "teacher", "view"};

bool added_later(std::string_view name) {
  return std::find(std::begin(kAddedLater), std::end(kAddedLater), name) != std::end(kAddedLater);
}

/// Numbers, answers and lists are JSON's own; the rest is text.
template <class T>
constexpr bool kIsText = NamedEnum<T> || kIsOptional<T>;

template <class T>
bool read_json(const nlohmann::json& json, T& value) {
  if constexpr (kIsText<T>) {
    return json.is_string() && parse_value(json.get<std::string>(), value);
  } else {
    try {
      value = json.get<T>();
      return true;
    } catch (const nlohmann::json::exception&) {
      return false;
    }
  }
}

}  // namespace

nlohmann::ordered_json to_json(const MethodOptions& options) {
  nlohmann::ordered_json json;
  MethodOptions::visit([&]<class T>(const char* name, T MethodOptions::*member, const char*) {
    if constexpr (kIsText<T>) {
      json[name] = format_value(options.*member);
    } else {
      json[name] = options.*member;
    }
  });
  return json;
}

void add_to_record(const MethodOptions& options, nlohmann::ordered_json& json) {
  const nlohmann::ordered_json defaults = to_json(MethodOptions{});
  const nlohmann::ordered_json values = to_json(options);
  for (const auto& [name, value] : values.items()) {
    if (!added_later(name) || value != defaults.at(name)) json[name] = value;
  }
}

MethodOptions method_from_json(const nlohmann::json& json) {
  MethodOptions options;
  MethodOptions::visit([&]<class T>(const char* name, T MethodOptions::*member, const char*) {
    const auto found = json.find(name);
    if (found == json.end()) {
      if (!added_later(name)) fail("spec.{} is missing", name);
    } else if (!read_json(*found, options.*member)) {
      fail("spec.{} cannot be {}", name, found->dump());
    }
  });
  return options;
}

bool set_option(MethodOptions& options, std::string_view wanted, const std::string& text) {
  bool known = false;
  MethodOptions::visit([&]<class T>(const char* name, T MethodOptions::*member, const char*) {
    if (name != wanted) return;
    known = true;
    if (!parse_value(text, options.*member)) {
      fail<ConfigError>("{} cannot be \"{}\" (expected {})", name, text, accepted_values<T>());
    }
  });
  return known;
}

}  // namespace gala
