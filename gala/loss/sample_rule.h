#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/loss/part.h"
#include "gala/model/model.h"

namespace gala {

/// What a rule decides by.
struct SampleInput {
  const Output& output;     ///< the adapting network's answers
  at::Tensor allowed = {};  ///< [N], 0 where an image cannot count any more; undefined: all can
  at::Tensor ages = {};     ///< [N], how long ago each came, where a store kept them
  /// Where the rule wanted to see images again: the network's answers to them as `--view` shows them, without
  /// gradient, and their numbers. Behind those that were wanted there may be others, which cannot count.
  const Output* again = nullptr;
  at::Tensor rows = {};
};

/// Says how much each image of a batch counts in the loss: filters (weights of 0 and 1) and weights.
class SampleRule : public Part {
 public:
  static constexpr std::string_view kKind = "sample rule";

  /// Weights [N], without gradient, on the device of the logits. Terms over single
  /// images are multiplied by them and divided as without them, by the batch or the confident images;
  /// a rule that wants the mean over the images it keeps scales its weights so.
  /// Where all weights are zero, the step is left out. Part of a captured pass: no boolean indexing and
  /// no look at values. A batch that is not finite must leave what it remembers as it was.
  virtual at::Tensor weigh(const SampleInput& input) = 0;
  /// Whether it must see images again before it weighs: then there must be a view.
  virtual bool looks_again() const { return false; }
  /// Which: [N], not 0 for those, without gradient. Images that are not wanted cannot count.
  virtual at::Tensor wants(const SampleInput&) const { return {}; }
  /// Whether it must know how old images are: then there must be a store that keeps them.
  virtual bool wants_ages() const { return false; }
};

/// `kept` [N] of 0 or 1 without those that are not allowed.
at::Tensor only_allowed(const at::Tensor& kept, const SampleInput& input);

std::span<const RegistryEntry<SampleRule>> sample_rule_registry();
std::unique_ptr<SampleRule> make_sample_rule(const Spec& spec);

}  // namespace gala
