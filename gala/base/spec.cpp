#include "gala/base/spec.h"

#include <algorithm>
#include <cctype>

#include "gala/base/error.h"
#include "gala/base/words.h"

namespace gala {
namespace {

/// Whether the plus sign at `at` begins another spec: one that no name follows (1e+5) does not.
bool is_plus(std::string_view text, std::size_t at) {
  return text[at] == '+' && at + 1 < text.size() &&
         std::isalpha(static_cast<unsigned char>(text[at + 1]));
}

bool needs_quotes(std::string_view value) {
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (is_plus(value, at)) return true;
  }
  return value.empty() || value.find_first_of(",:=\"\\ \t\n") != std::string_view::npos;
}

/// Reads one value starting at `at` and leaves `at` behind it.
std::string read_value(std::string_view text, std::size_t& at) {
  std::string value;
  if (at < text.size() && text[at] == '"') {
    for (++at; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\' && ++at == text.size()) break;
      value += text[at];
    }
    if (at >= text.size()) fail<ConfigError>("\"{}\": the quoted value has no end", in_brief(text));
    ++at;
    if (at < text.size() && text[at] != ',') {
      fail<ConfigError>("\"{}\": expected a comma after the quoted value at position {}",
                        in_brief(text), at);
    }
    return value;
  }
  while (at < text.size() && text[at] != ',') {
    if (text[at] == '=' || text[at] == '"') {
      fail<ConfigError>("\"{}\": unexpected {} at position {} (put the value in double quotes)",
                        in_brief(text), text[at], at);
    }
    value += text[at++];
  }
  return value;
}

/// Where something else than an option follows a comma, the comma may belong to the value before it.
std::string comma_hint(const Spec& spec, std::string_view rest) {
  if (spec.options.empty() || rest.find('"') != std::string_view::npos) return "";
  Spec meant = spec;
  const std::size_t end = std::min(rest.find(','), rest.size());
  meant.options.back().second.append(",").append(rest.substr(0, end));
  return fmt::format(
      "; a value that holds a comma is written in double quotes, and all of it in single quotes "
      "for "
      "the shell: '{}{}'",
      meant.to_string(), end < rest.size() ? ",..." : "");
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

Spec Spec::parse(std::string_view text) {
  Spec spec;
  const std::size_t colon = text.find(':');
  spec.name = std::string(text.substr(0, colon));
  if (spec.name.empty() || spec.name.find_first_of("+,=\" \t\n") != std::string::npos) {
    fail<ConfigError>("\"{}\" does not begin with a name (expected name:key=value,key=value)",
                      in_brief(text));
  }
  if (colon == std::string_view::npos) return spec;
  std::size_t at = colon + 1;
  if (at == text.size()) fail<ConfigError>("\"{}\": nothing follows the colon", in_brief(text));
  while (at < text.size()) {
    const std::size_t equals = text.find('=', at);
    const std::string key(text.substr(at, equals == std::string_view::npos ? equals : equals - at));
    if (equals == std::string_view::npos || key.empty() ||
        key.find_first_of(",:\" \t\n") != std::string::npos) {
      fail<ConfigError>("\"{}\": expected key=value at position {}{}", in_brief(text, 200), at,
                        in_brief(comma_hint(spec, text.substr(at)), 200));
    }
    if (spec.find(key))
      fail<ConfigError>("\"{}\": option {} is given twice", in_brief(text), in_brief(key));
    at = equals + 1;
    spec.options.emplace_back(key, read_value(text, at));
    if (at < text.size() && ++at == text.size()) {
      fail<ConfigError>("\"{}\": nothing follows the last comma", in_brief(text));
    }
  }
  return spec;
}

std::string Spec::to_string() const {
  std::string text = name;
  char separator = ':';
  for (const auto& [key, value] : options) {
    text += separator;
    separator = ',';
    text += key + '=';
    if (!needs_quotes(value)) {
      text += value;
      continue;
    }
    text += '"';
    for (char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  return text;
}

const std::string* Spec::find(std::string_view key) const {
  for (const auto& option : options) {
    if (option.first == key) return &option.second;
  }
  return nullptr;
}

void Spec::set(std::string_view key, std::string value) {
  for (auto& option : options) {
    if (option.first == key) {
      option.second = std::move(value);
      return;
    }
  }
  options.emplace_back(std::string(key), std::move(value));
}

std::vector<Spec> parse_specs(std::string_view text) {
  std::vector<Spec> specs;
  if (text == kNoPart) return specs;
  std::size_t begin = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (quoted && text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && is_plus(text, at)) {
      specs.push_back(Spec::parse(text.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  if (!quoted && begin < text.size() && text.size() > 1 && text.ends_with('+')) {
    fail<ConfigError>("\"{}\": nothing follows the last +", in_brief(text));
  }
  specs.push_back(Spec::parse(text.substr(begin)));
  return specs;
}

std::string to_string(const std::vector<Spec>& specs) {
  if (specs.empty()) return std::string(kNoPart);
  std::string text;
  for (const Spec& spec : specs) {
    if (!text.empty()) text += '+';
    text += spec.to_string();
  }
  return text;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 200;
  if (word.size() > kLongest) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return " (there are none)";
  const std::string near = nearest(word, candidates);
  return fmt::format(" ({}known: {})", near.empty() ? "" : "did you mean \"" + near + "\"? ",
                     fmt::join(candidates, ", "));
}

}  // namespace gala
