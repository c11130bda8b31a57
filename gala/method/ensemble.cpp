#include "gala/method/ensemble.h"

#include <ATen/ATen.h>

#include "gala/base/error.h"

namespace gala {

EnsembleAfterStep::EnsembleAfterStep(const Options& options) : options_(options) {
  if (!(options.source >= 0 && options.source <= 1)) {
    fail<ConfigError>("after step ensemble: source must lie in [0, 1], not {}", options.source);
  }
}

void EnsembleAfterStep::after(const StepView& view, const StepRecord&) {
  // As the published code: momentum times one plus the rest times the other.
  view.parameters.values().mul_(1 - options_.source).add_(view.source, options_.source);
}

}  // namespace gala
