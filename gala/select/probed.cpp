#include "gala/select/probed.h"

#include "gala/base/error.h"

namespace gala {

PalmSelector::PalmSelector(const Options& options) : options_(options) {
  if (!(options.temperature > 0)) {
    fail<ConfigError>("selector palm: temperature must be above 0, not {}", options.temperature);
  }
  if (!(options.threshold >= 0)) {
    fail<ConfigError>("selector palm: threshold must not be negative, not {}", options.threshold);
  }
  if (!(options.keep >= 0 && options.keep <= 1)) {
    fail<ConfigError>("selector palm: keep must lie in [0, 1], not {}", options.keep);
  }
}

LawSelector::LawSelector(const Options& options) : options_(options) {
  if (!(options.power >= 0)) {
    fail<ConfigError>("selector law: power must not be negative, not {}", options.power);
  }
}

}  // namespace gala
