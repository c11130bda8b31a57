#include "gala/base/json.h"

#include "gala/base/error.h"

namespace gala {
namespace {

/// Told before parsing, from the brackets outside of texts: that takes a hundredth of the time.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      i += c == '\\';
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  if (is_too_deep(text)) fail("it is nested more than {} deep", kDeepestJson);
  return nlohmann::json::parse(text);
}

nlohmann::json try_parse_json(std::string_view text) {
  if (is_too_deep(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::int64_t count_from(const nlohmann::json& value) {
  constexpr double kMost = 1e12;
  const auto count = value.get<double>();
  if (!(count >= 0 && count <= kMost)) fail("a count of {} cannot be", value.dump());
  return value.get<std::int64_t>();
}

}  // namespace gala
