#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
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
  std::uint64_t seed = 0;  ///< for parts that draw, together with the number of the step
};

/// Something done after every step that was not refused: a pull to the source, a restore. It does not
/// count as displacement (but with `displacement=difference`). Parameters may only come nearer to the
/// source by it: the guard bounds how far they are by the way that steps made.
class AfterStep : public Part {
 public:
  static constexpr std::string_view kKind = "after step";

  virtual void after(const StepView& view, const StepRecord& record) = 0;
};

std::span<const RegistryEntry<AfterStep>> after_step_registry();
std::unique_ptr<AfterStep> make_after_step(const Spec& spec);

}  // namespace gala
