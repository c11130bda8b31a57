#include "gala/method/restore.h"

#include <ATen/ATen.h>

#include "gala/base/error.h"
#include "gala/base/random.h"

namespace gala {

RestoreAfterStep::RestoreAfterStep(const Options& options) : options_(options) {
  if (!(options.share >= 0 && options.share <= 1)) {
    fail<ConfigError>("after step restore: share must lie in [0, 1], not {}", options.share);
  }
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
