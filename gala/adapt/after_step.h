#pragma once
#include <ATen/core/Tensor.h>

#include "gala/loss/part.h"
#include "gala/step/step_record.h"
#include "gala/tensor/arena.h"

namespace gala {

/// What may be looked at and changed after a step. All of it lies on the device; what is queued there
/// runs after the step.
struct StepView {
  const ParameterArena& parameters;  ///< its values may be written in place
  const at::Tensor& source;          ///< the source's values, in the arena's layout
  const LayerPartition& layers;
};

/// Something done after every step that was not refused: a teacher that follows, a pull to the source,
/// a restore, a reset. It does not count as displacement. Parameters may only come nearer to the
/// source by it: the guard bounds how far they are by the way that steps made.
class AfterStep : public Part {
 public:
  virtual void after(const StepView& view, const StepRecord& record) = 0;
};

}  // namespace gala
