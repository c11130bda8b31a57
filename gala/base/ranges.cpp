#include "gala/base/ranges.h"

namespace gala {

void check_range(std::span<const OptionRange> ranges, std::string_view part,
                 std::string_view option, double value, const std::string& text) {
  for (const OptionRange& each : ranges) {
    if (each.part != part || each.option != option || each.range.holds(value)) continue;
    const std::string who = part.empty() ? "" : fmt::format("{}: ", part);
    fail<ConfigError>("{}{} {}, not {}", who, option, each.range.words, text);
  }
}

}  // namespace gala
