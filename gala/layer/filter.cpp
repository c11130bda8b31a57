#include "gala/layer/filter.h"

namespace gala {

bool matches_pattern(std::string_view name, std::string_view pattern) {
  // Only the last star ever needs another try: an earlier one has already taken the least it can.
  std::size_t at = 0, in_pattern = 0;
  std::size_t star = std::string_view::npos, after_star = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      after_star = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == name[at])) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++after_star;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

}  // namespace gala
