#include "gala/method/ensemble.h"

#include <ATen/ATen.h>

#include "gala/method/ranges.h"

namespace gala {

EnsembleAfterStep::EnsembleAfterStep(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "after step ensemble", options);
}

void EnsembleAfterStep::after(const StepView& view, const StepRecord&) {
  // As the published code: momentum times one plus the rest times the other.
  view.parameters.values().mul_(1 - options_.source).add_(view.source, options_.source);
}

}  // namespace gala
