#pragma once
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "gala/base/registry.h"
#include "gala/method/method_options.h"

namespace gala {

/// A method of the literature: a name for a set of options, any of which can be another.
struct Recipe {
  std::string_view name;
  std::string_view summary;  ///< what it does and whose it is
  std::span<const std::pair<std::string_view, std::string_view>> options;
};

/// Every recipe there is; `gala list methods` prints them in full.
std::span<const Recipe> recipes();
/// Throws ConfigError, with the known names, when there is none of this name.
const Recipe& find_recipe(std::string_view name);
/// Sets what the recipe says; the rest stays.
void apply(const Recipe& recipe, MethodOptions& options);
/// The options of a recipe:
///
///   gala::MethodOptions options = gala::recipe("roid");
///   options.select = "gala";
MethodOptions recipe(std::string_view name);
/// For listings.
std::vector<MethodInfo> describe_recipes();

}  // namespace gala
