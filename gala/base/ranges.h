#pragma once
#include <concepts>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "gala/base/options.h"

namespace gala {

/// Which numbers an option may be, and how a message says it.
struct NumberRange {
  std::string_view words;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_is_out = false, high_is_out = false;

  constexpr bool holds(double value) const {
    return (low_is_out ? value > low : value >= low) &&
           (high_is_out ? value < high : value <= high);
  }
};

inline constexpr NumberRange kShare{.words = "must lie in [0, 1]", .low = 0, .high = 1};
inline constexpr NumberRange kNotNegative{.words = "must not be negative", .low = 0};
inline constexpr NumberRange kAboveZero{.words = "must be above 0", .low = 0, .low_is_out = true};
inline constexpr NumberRange kAtLeastOne{.words = "must be at least 1", .low = 1};

/// The range of an option of a part, whose name is that of messages: "sample rule eta"; empty for the options
/// of a whole method. Lists of these are what the parts' constructors go by, and the Python package, which has
/// parts of its own behind the same names.
struct OptionRange {
  std::string_view part, option;
  NumberRange range;
};

/// Throws ConfigError where the option has a range and the value lies outside: "sample rule eta: margin must
/// be above 0, not -1". `text` is the value as messages write it.
void check_range(std::span<const OptionRange> ranges, std::string_view part,
                 std::string_view option, double value, const std::string& text);

/// Checks every number among the options of a part.
template <class Options>
void check_ranges(std::span<const OptionRange> ranges, std::string_view part,
                  const Options& options) {
  Options::visit([&]<class T>(const char* name, T Options::*member, const char*) {
    if constexpr (std::floating_point<T> || (std::integral<T> && !std::same_as<T, bool>)) {
      const T value = options.*member;
      check_range(ranges, part, name, static_cast<double>(value), format_value(value));
    }
  });
}

}  // namespace gala
