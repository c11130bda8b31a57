#include "gala/base/problems.h"

namespace gala {

void Problems::throw_if_any(std::string_view subject) const {
  if (list_.empty()) return;
  if (list_.size() == 1) fail<ConfigError>("{}: {}", subject, list_[0]);
  fail<ConfigError>("{}: {} problems\n  - {}", subject, list_.size(), fmt::join(list_, "\n  - "));
}

}  // namespace gala
