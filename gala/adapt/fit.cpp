#include "gala/adapt/fit.h"

#include "gala/base/error.h"

namespace gala {

Fit fit(Model& model, const MethodOptions& options, const Loss& loss, Selector& selector) {
  for (const auto& [name, value] :
       {std::pair{"inner_steps", options.inner_steps}, {"adapt_every", options.adapt_every}}) {
    if (value < 1) fail<ConfigError>("{} must be at least 1, not {}", name, value);
  }
  if (options.seed < 0) fail<ConfigError>("seed must be at least 0, not {}", options.seed);
  const LossNeeds needs = loss.needs();
  if (needs.teacher || needs.augmented) {
    fail<ConfigError>("the loss needs {}, and this method has none",
                      needs.teacher ? "a teacher" : "augmented images");
  }
  Fit fit;
  fit.granularity = options.partition.value_or(selector.default_granularity());
  // In a partition of blocks the head is in none.
  fit.head =
      fit.granularity != Granularity::kBlock &&
      (options.head == HeadRule::kAuto ? loss.adapts_head() : options.head == HeadRule::kAdapt);
  ParameterFilter filter{.head = fit.head, .include = options.include, .exclude = options.exclude};
  selector.restrict(filter);
  fit.adapted = adapted_parameters(model, filter, fit.granularity);
  fit.layers = make_partition(fit.adapted, fit.granularity);
  selector.attach(fit.layers);
  return fit;
}

}  // namespace gala
