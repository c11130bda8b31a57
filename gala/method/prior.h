#pragma once
#include "gala/method/readout.h"

namespace gala {

/// Prior correction (Marsden et al. 2024, ROID): the logits times the smoothed mean of the batch's
/// answers, which helps where a batch holds few classes. As in the published code it is the *logits* that
/// are multiplied. The mean is over the images whose answer is finite.
class PriorReadout : public Readout {
 public:
  using Options = NoOptions;
  explicit PriorReadout(const Options&) {}
  at::Tensor correct(const Output& output) override;
};

}  // namespace gala
