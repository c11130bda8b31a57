#include "gala/base/options.h"

#include <utility>

namespace gala {
namespace {

/// What other programs call an option, and what it is called here.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"lr", "rate"}, {"learning_rate", "rate"}, {"eps", "epsilon"}};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    names.emplace_back(word);
    if (comma == std::string_view::npos) return names;
    text.remove_prefix(comma + 1);
  }
}

Spec with_our_names(Spec spec, const std::vector<std::string>& known, std::string_view what) {
  for (auto& [name, value] : spec.options) {
    for (const auto& [theirs, ours] : kOtherNames) {
      if (name != theirs || contains(known, name) || !contains(known, ours)) continue;
      if (spec.find(ours)) {
        fail<ConfigError>("{} {}: {} and {} are the same option: give one of them", what, spec.name,
                          ours, theirs);
      }
      name = ours;
    }
  }
  return spec;
}

}  // namespace gala
