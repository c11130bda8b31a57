#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/model/model.h"

namespace gala {

/// What a loss is made from. Pointers are null where nobody asked for what they lead to.
struct LossInput {
  const Output& student;              ///< the adapting network's answer to the batch
  const Output* teacher = nullptr;    ///< another network's answer to it, without gradient
  const Output* augmented = nullptr;  ///< the adapting network's answer to the batch, augmented
  at::Tensor weights = {};            ///< of the images, [N]; undefined: 1 each
};

/// What a loss asks for beside the student's answer.
struct LossNeeds {
  bool teacher = false;
  bool augmented = false;
};

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

  virtual LossNeeds needs() const { return {}; }
  virtual LossTerms evaluate(const LossInput& input) const = 0;
  /// Whether the published protocol of this loss adapts the classifier head.
  virtual bool adapts_head() const { return true; }
};

std::span<const RegistryEntry<Loss>> loss_registry();
std::unique_ptr<Loss> make_loss(const Spec& spec);

}  // namespace gala
