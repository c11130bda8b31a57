#pragma once
#include <ATen/core/Tensor.h>

#include "gala/loss/part.h"
#include "gala/model/model.h"

namespace gala {

/// Says how much each image of a batch counts in the loss: filters (weights of 0 and 1) and weights.
class SampleRule : public Part {
 public:
  /// Weights [N], without gradient, on the device of the logits. A loss is the mean of weight times
  /// loss over the batch; a rule that wants the mean over the images it keeps scales its weights so.
  /// Part of a captured pass: no boolean indexing and no look at values. A batch that is not finite
  /// must leave what it remembers as it was.
  virtual at::Tensor weigh(const Output& output) = 0;
};

}  // namespace gala
