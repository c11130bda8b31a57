#pragma once
#include <ATen/core/Tensor.h>

namespace gala {

/// Σ x² of a dense float32 tensor, in double; the same bits at any number of threads on the CPU. Not
/// finite exactly when an element is not.
double squared_norm(const at::Tensor& tensor);

}  // namespace gala
