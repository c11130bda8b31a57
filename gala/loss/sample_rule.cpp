#include "gala/loss/sample_rule.h"

#include <ATen/ATen.h>

namespace gala {

at::Tensor only_allowed(const at::Tensor& kept, const SampleInput& input) {
  return input.allowed.defined() ? at::where(input.allowed.ne(0), kept, at::zeros_like(kept))
                                 : kept;
}

}  // namespace gala
