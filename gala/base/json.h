#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace gala {

/// How deep objects and lists of a file may lie within each other. The parser takes any depth; but whatever
/// copies, compares or prints such a value calls itself once for each, and would end the program by a
/// full stack.
inline constexpr int kDeepestJson = 64;

/// JSON of a file that anybody may have written. Throws nlohmann's exceptions for what is none, and
/// Error for what is nested deeper than kDeepestJson.
nlohmann::json parse_json(std::string_view text);
/// The same; a discarded value instead of an exception.
nlohmann::json try_parse_json(std::string_view text);

/// How many there are of something: from 0 to 10^12, so that sums of such numbers do not run over. Throws
/// Error for more, and nlohmann's exception for what is no number.
std::int64_t count_from(const nlohmann::json& value);

}  // namespace gala
