#pragma once
#include <ATen/core/Tensor.h>

#include "gala/loss/part.h"

namespace gala {

/// Makes the answer from the logits: a correction by the classes seen, smoothing between neighbours,
/// prototypes in place of the head.
class Readout : public Part {
 public:
  /// Of the logits [N, C] that would answer; a row that is not finite stays so.
  virtual at::Tensor correct(const at::Tensor& logits) = 0;
};

}  // namespace gala
