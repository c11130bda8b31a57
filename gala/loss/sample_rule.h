#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/loss/part.h"
#include "gala/model/model.h"

namespace gala {

/// Says how much each image of a batch counts in the loss: filters (weights of 0 and 1) and weights.
class SampleRule : public Part {
 public:
  static constexpr std::string_view kKind = "sample rule";

  /// Weights [N], without gradient, on the device of the logits. Terms over single
  /// images are multiplied by them and divided as without them, by the batch or the confident images;
  /// a rule that wants the mean over the images it keeps scales its weights so.
  /// Where all weights are zero, the step is left out. Part of a captured pass: no boolean indexing and
  /// no look at values. A batch that is not finite must leave what it remembers as it was.
  virtual at::Tensor weigh(const Output& output) = 0;
};

std::span<const RegistryEntry<SampleRule>> sample_rule_registry();
std::unique_ptr<SampleRule> make_sample_rule(const Spec& spec);

}  // namespace gala
