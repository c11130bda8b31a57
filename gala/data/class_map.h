#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

/// Numbers of classes by name.
struct ClassMap {
  std::map<std::string, std::int64_t, std::less<>> numbers;
  std::vector<std::string> names;  ///< by number; empty where not every number has its name
  std::int64_t classes = 0;        ///< the largest number + 1

  /// The numbers of these names, no two alike. Throws ConfigError with those that are unknown and the
  /// nearest; `where` and `origin` say where the names lie and what knows their numbers.
  std::vector<std::int64_t> numbers_of(const std::vector<std::string>& wanted,
                                       const std::string& where, const std::string& origin) const;
};

/// Reads a file that numbers classes: text with a name a line, in their order; or JSON, being a list of
/// names, an object {name: number}, or {"0": ["n01440764", "tench"], ...} as ImageNet's is handed
/// around, of which each name will do. Throws FormatError.
ClassMap read_class_map(const std::filesystem::path& path);

/// Gives the labels of a source the numbers that their class names have in `known`. Throws ConfigError
/// when a name is not there.
void number_classes(DataSource& source, std::span<const std::string> known);

/// "a, b, c and 4 more".
std::string shortened(const std::vector<std::string>& names);

}  // namespace gala
