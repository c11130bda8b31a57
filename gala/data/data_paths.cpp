#include "gala/data/data_paths.h"

#include <algorithm>
#include <array>

#include "gala/base/file.h"

namespace gala {

bool is_data_path(std::string_view key) {
  constexpr std::array<std::string_view, 4> kPaths = {"path", "images", "labels", "frost"};
  return std::find(kPaths.begin(), kPaths.end(), key) != kPaths.end();
}

Spec with_canonical_paths(Spec spec) {
  for (auto& [key, value] : spec.options) {
    if (is_data_path(key) && !value.empty()) value = canonical_path(value).string();
  }
  return spec;
}

}  // namespace gala
