#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "gala/base/registry.h"
#include "gala/model/model.h"

namespace gala {

/// What a loss says of a batch. Both are scalars on the device of the logits.
struct LossTerms {
  at::Tensor value;      ///< to be minimised; differentiable
  at::Tensor confident;  ///< samples that took part in the pseudo-label term, or all of them
};

/// An unsupervised objective on a batch's output. Without state, and without boolean indexing, so
/// that a captured graph can replay it: masked sums over max(count, 1).
class Loss {
 public:
  static constexpr std::string_view kKind = "loss";
  virtual ~Loss() = default;

  virtual LossTerms evaluate(const Output& output) const = 0;
  /// Whether the published protocol of this loss adapts the classifier head.
  virtual bool adapts_head() const { return true; }
};

std::span<const RegistryEntry<Loss>> loss_registry();
std::unique_ptr<Loss> make_loss(const Spec& spec);

}  // namespace gala
