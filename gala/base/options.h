#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gala/base/error.h"
#include "gala/base/spec.h"

namespace gala {

// An options struct is plain, has a default for each member, and one static `visit`:
//
//   struct SgdOptions {
//     double rate = 1e-3;
//     template <class Visitor>
//     static void visit(Visitor&& option) {
//       option("rate", &SgdOptions::rate, "learning rate");
//     }
//   };
//
// That single description feeds the parser, the printer, `gala list` and the generated docs.
// Members may be bool, int64_t, double, std::string, an enum with an `enum_names` overload, an optional
// enum (`auto` where there is none) or a list of texts (written with commas).

/// An enum whose values 0, 1, ... have the names that `enum_names(E{})` lists, found by its namespace.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e).size();
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// The words between commas, without the spaces around them.
std::vector<std::string> split_names(std::string_view text);

/// One option as users see it.
struct OptionInfo {
  std::string name;
  std::string type;  ///< "number", "integer", "yes|no", "text", or the accepted names
  std::string default_value;
  std::string help;
};

/// The text of a value; numbers are written so that they read back to the same value.
template <class T>
std::string format_value(const T& value) {
  if constexpr (std::same_as<T, bool>) {
    return value ? "yes" : "no";
  } else if constexpr (std::same_as<T, std::string>) {
    return value;
  } else if constexpr (NamedEnum<T>) {
    return std::string(enum_names(value)[static_cast<std::size_t>(value)]);
  } else if constexpr (kIsOptional<T>) {
    return value ? format_value(*value) : "auto";
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    return fmt::format("{}", fmt::join(value, ","));
  } else {
    return fmt::format("{}", value);
  }
}

/// What may be written for a value of type T.
template <class T>
std::string accepted_values() {
  if constexpr (std::same_as<T, bool>) {
    return "yes|no";
  } else if constexpr (std::same_as<T, std::string>) {
    return "text";
  } else if constexpr (NamedEnum<T>) {
    return fmt::format("{}", fmt::join(enum_names(T{}), "|"));
  } else if constexpr (kIsOptional<T>) {
    return "auto|" + accepted_values<typename T::value_type>();
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    return "texts with commas";
  } else if constexpr (std::integral<T>) {
    return "integer";
  } else {
    return "number";
  }
}

/// Reads a value; false when the text is not one.
template <class T>
bool parse_value(std::string_view text, T& value) {
  if constexpr (std::same_as<T, bool>) {
    if (text == "yes" || text == "true" || text == "1") return value = true, true;
    if (text == "no" || text == "false" || text == "0") return value = false, true;
    return false;
  } else if constexpr (std::same_as<T, std::string>) {
    value = std::string(text);
    return true;
  } else if constexpr (NamedEnum<T>) {
    const auto names = enum_names(T{});
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) return value = static_cast<T>(i), true;
    }
    return false;
  } else if constexpr (kIsOptional<T>) {
    if (text == "auto") return value.reset(), true;
    typename T::value_type parsed{};
    if (!parse_value(text, parsed)) return false;
    value = parsed;
    return true;
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    value = text.empty() ? T{} : split_names(text);
    return true;
  } else {
    T parsed{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (status != std::errc{} || end != text.data() + text.size()) return false;
    if constexpr (std::floating_point<T>) {
      if (!std::isfinite(parsed)) return false;
    }
    value = parsed;
    return true;
  }
}

/// The options of a struct, with their defaults.
template <class Options>
std::vector<OptionInfo> describe_options() {
  std::vector<OptionInfo> infos;
  const Options defaults{};
  Options::visit([&]<class T>(const char* name, T Options::*member, const char* help) {
    infos.push_back({name, accepted_values<T>(), format_value(defaults.*member), help});
  });
  return infos;
}

/// The spec with options under the names they have here, where the rest of the world has another: `lr`
/// and `learning_rate` for `rate`, `eps` for `epsilon`. Throws ConfigError when one is given twice.
Spec with_our_names(Spec spec, const std::vector<std::string>& known, std::string_view what);

/// Fills an options struct from a spec. `what` names the kind of thing in messages ("selector").
template <class Options>
Options parse_options(const Spec& given, std::string_view what) {
  Options options{};
  std::vector<std::string> known;
  Options::visit([&](const char* name, auto, const char*) { known.emplace_back(name); });
  const Spec spec = with_our_names(given, known, what);
  Options::visit([&]<class T>(const char* name, T Options::*member, const char*) {
    const std::string* text = spec.find(name);
    if (text && !parse_value(*text, options.*member)) {
      fail<ConfigError>("{} {}: option {} cannot be \"{}\" (expected {})", what, spec.name, name,
                        *text, accepted_values<T>());
    }
  });
  for (const auto& option : spec.options) {
    if (std::find(known.begin(), known.end(), option.first) == known.end()) {
      fail<ConfigError>("{} {} has no option \"{}\"{}", what, spec.name, option.first,
                        suggestion(option.first, known));
    }
  }
  return options;
}

/// The spec that gives these options, every one written out.
template <class Options>
Spec options_to_spec(std::string name, const Options& options) {
  Spec spec{std::move(name), {}};
  Options::visit([&]<class T>(const char* key, T Options::*member, const char*) {
    spec.options.emplace_back(key, format_value(options.*member));
  });
  return spec;
}

/// For methods without options.
struct NoOptions {
  template <class Visitor>
  static void visit(Visitor&&) {}
};

}  // namespace gala
