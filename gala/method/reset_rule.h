#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/loss/part.h"
#include "gala/step/step_record.h"

namespace gala {

/// Says when to go back to the source: parameters, statistics, moments, and what the parts learned.
class ResetRule : public Part {
 public:
  static constexpr std::string_view kKind = "reset rule";

  /// After a step that was not refused; `logits` [N, C] are what answers, on the host.
  virtual bool is_due(const StepRecord& record, const at::Tensor& logits) = 0;
};

std::span<const RegistryEntry<ResetRule>> reset_rule_registry();
std::unique_ptr<ResetRule> make_reset_rule(const Spec& spec);

}  // namespace gala
