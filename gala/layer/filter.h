#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace gala {

/// Which parameters may adapt at all.
struct ParameterFilter {
  bool head = true;                    ///< the last linear layer too
  bool norms = true;                   ///< norm scale and shift too
  bool others = true;                  ///< everything that is not a norm too
  std::vector<std::string> include{};  ///< patterns on tensor or module names; empty: everything
  std::vector<std::string> exclude{};
  std::vector<std::string> skip{};  ///< as exclude, but may fit nothing: a selector's own
};

/// True when `name` fits the pattern: `*` any characters, `?` one, the rest itself.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace gala
