#include "gala/model/precision.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <cstdlib>

namespace gala {

void allow_tf32(Precision precision) {
  const bool allowed = precision == Precision::kTf32;
  at::globalContext().setAllowTF32CuDNN(allowed);
  at::globalContext().setAllowTF32CuBLAS(allowed);
}

void set_deterministic(bool deterministic) {
  // cuBLAS reads this once, when it starts.
  if (deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(deterministic, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(deterministic);
  at::globalContext().setBenchmarkCuDNN(!deterministic);
}

PrecisionScope::PrecisionScope(Precision precision, c10::DeviceType device)
    : device_(device),
      active_(precision == Precision::kBf16 && !at::autocast::is_autocast_enabled(device)) {
  if (!active_) return;
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, at::kBFloat16);
  at::autocast::increment_nesting();
}

PrecisionScope::~PrecisionScope() {
  if (!active_) return;
  // The rounded copies of the parameters are of no use once these have moved.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, false);
}

}  // namespace gala
