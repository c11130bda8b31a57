#include "gala/loss/age.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace gala {

at::Tensor AgeRule::weigh(const SampleInput& input) {
  const c10::NoGradGuard no_grad;
  return only_allowed(at::sigmoid(-input.ages), input);
}

}  // namespace gala
