#include "gala/optim/sgd.h"

#include <limits>

namespace gala {

Sgd::Sgd(const Options& options) : RuleOptimizer(options.moments), options_(options) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  check_range("sgd", "rate", options.rate, 0, kNoLimit);
  check_range("sgd", "momentum", options.momentum, 0, 1);
  check_range("sgd", "weight_decay", options.weight_decay, 0, kNoLimit);
  if (options.nesterov && options.momentum == 0) {
    fail<ConfigError>("optimizer sgd: nesterov needs a momentum above 0");
  }
}

SgdRule Sgd::rule(std::int64_t) const {
  return {.rate = static_cast<float>(options_.rate),
          .momentum = static_cast<float>(options_.momentum),
          .weight_decay = static_cast<float>(options_.weight_decay),
          .nesterov = options_.nesterov};
}

}  // namespace gala
