#include "gala/optim/cuda_sweep.h"

namespace gala {

std::unique_ptr<Sweep<AdamRule>> make_cuda_sweep(const SweepContext<AdamRule>&) {
  return nullptr;
}

std::unique_ptr<Sweep<SgdRule>> make_cuda_sweep(const SweepContext<SgdRule>&) {
  return nullptr;
}

}  // namespace gala
