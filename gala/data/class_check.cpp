#include "gala/data/class_check.h"

#include <algorithm>

#include "gala/base/error.h"

namespace gala {

void check_classes(const DataSource& source, const Model& model) {
  const std::int64_t classes = source.classes();
  if (!source.class_names().empty() && classes != model.classes()) {
    fail<ConfigError>("{} has {} classes, but the head of {} has {}", source.spec.name, classes,
                      model.spec().name, model.classes());
  }
  if (classes > model.classes()) {
    fail<ConfigError>("{} has labels up to {}, but the head of {} has {} classes (0 to {})",
                      source.spec.name, classes - 1, model.spec().name, model.classes(),
                      model.classes() - 1);
  }
}

std::string class_name_warning(const DataSource& source, std::span<const std::string> known) {
  const std::vector<std::string>& names = source.class_names();
  for (std::size_t c = 0; c < std::min(names.size(), known.size()); ++c) {
    if (names[c] == known[c]) continue;
    return fmt::format(
        "class {} is \"{}\" in the data and \"{}\" in the weights: the accuracy may mean nothing",
        c, names[c], known[c]);
  }
  return "";
}

}  // namespace gala
