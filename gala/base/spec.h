#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gala {

/// A named part with options, written `name:key=value,key=value`: the same string on the command
/// line, in plans and in records. A value that holds a comma, colon, equals sign, quote, backslash or
/// space is written in double quotes, with backslash before quotes and backslashes.
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;

  Spec() = default;
  Spec(std::string part, std::vector<std::pair<std::string, std::string>> its_options)
      : name(std::move(part)), options(std::move(its_options)) {}
  /// Made from its text wherever a spec is wanted: make_model("resnet18:classes=10").
  Spec(const char* text) : Spec(parse(text)) {}         // NOLINT: implicit on purpose
  Spec(const std::string& text) : Spec(parse(text)) {}  // NOLINT

  /// Throws ConfigError with the place of the mistake.
  static Spec parse(std::string_view text);
  /// The text that parses back to an equal spec.
  std::string to_string() const;

  /// The value of an option, or nullptr when it is not given.
  const std::string* find(std::string_view key) const;
  /// Adds or replaces an option.
  void set(std::string_view key, std::string value);

  bool operator==(const Spec&) const = default;
};

/// Several specs with plus signs between them, as a part that may be several is written:
/// `restore:share=0.01+ensemble`. A plus that no name follows (1e+5) belongs to a value. "none" is no
/// spec at all.
std::vector<Spec> parse_specs(std::string_view text);
std::string to_string(const std::vector<Spec>& specs);

/// What is written where a part is not wanted.
inline constexpr std::string_view kNoPart = "none";

/// The candidate nearest to `word` by edit distance, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// ` (did you mean "x"? known: a, b, x)`, for messages about unknown names.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace gala
