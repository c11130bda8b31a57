#include "gala/optim/adam.h"

#include <cmath>
#include <limits>

namespace gala {

Adam::Adam(const Options& options) : RuleOptimizer(options.moments), options_(options) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  check_range("adam", "rate", options.rate, 0, kNoLimit);
  check_range("adam", "beta1", options.beta1, 0, 1);
  check_range("adam", "beta2", options.beta2, 0, 1);
  check_range("adam", "epsilon", options.epsilon, 1e-30, kNoLimit);
  check_range("adam", "weight_decay", options.weight_decay, 0, kNoLimit);
}

AdamRule Adam::rule(std::int64_t step) const {
  const auto t = static_cast<double>(step);
  return {.beta1 = static_cast<float>(options_.beta1),
          .beta2 = static_cast<float>(options_.beta2),
          .epsilon = static_cast<float>(options_.epsilon),
          .weight_decay = static_cast<float>(options_.weight_decay),
          .fresh1 = static_cast<float>(1 - options_.beta1),
          .fresh2 = static_cast<float>(1 - options_.beta2),
          .step_size = static_cast<float>(options_.rate / (1 - std::pow(options_.beta1, t))),
          .second_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t)))};
}

}  // namespace gala
