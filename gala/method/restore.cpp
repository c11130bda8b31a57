#include "gala/method/restore.h"

#include <ATen/ATen.h>

#include "gala/base/random.h"
#include "gala/method/ranges.h"

namespace gala {

RestoreAfterStep::RestoreAfterStep(const Options& options) : options_(options) {
  check_ranges(method_ranges(), "after step restore", options);
}

void RestoreAfterStep::after(const StepView& view, const StepRecord& record) {
  const at::Tensor& values = view.parameters.values();
  // A generator of this step alone: a run that goes on draws what one without a break draws.
  at::Generator generator = at::globalContext().defaultGenerator(values.device()).clone();
  Random random(view.seed, "restore", {static_cast<std::uint64_t>(record.step)});
  generator.set_current_seed(random.next());
  const at::Tensor back = at::rand(values.sizes(), generator, values.options()).lt(options_.share);
  values.copy_(at::where(back, view.source, values));
}

}  // namespace gala
