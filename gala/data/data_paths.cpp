#include "gala/data/data_paths.h"

#include <algorithm>

#include "gala/base/file.h"

namespace gala {

Spec with_canonical_paths(Spec spec) {
  for (const std::string_view key : data_paths(spec.name)) {
    const std::string* value = spec.find(key);
    if (value && !value->empty()) spec.set(key, canonical_path(*value).string());
  }
  return spec;
}

Spec without_paths(Spec spec, std::span<const std::string_view> paths) {
  std::erase_if(spec.options, [&](const auto& option) {
    return std::find(paths.begin(), paths.end(), option.first) != paths.end();
  });
  return spec;
}

}  // namespace gala
