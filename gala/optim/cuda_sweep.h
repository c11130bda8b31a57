#pragma once
#include <memory>

#include "gala/optim/adam_rule.h"
#include "gala/optim/sgd_rule.h"
#include "gala/optim/sweep.h"

namespace gala {

/// The passes as CUDA kernels, in a workspace whose memory is a GPU's; null where the arena has more
/// tensors than a kernel takes, or where this library was built without CUDA.
std::unique_ptr<Sweep<AdamRule>> make_cuda_sweep(const SweepContext<AdamRule>& context);
std::unique_ptr<Sweep<SgdRule>> make_cuda_sweep(const SweepContext<SgdRule>& context);

}  // namespace gala
