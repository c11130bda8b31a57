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
  const Output& student;  ///< the adapting network's answer to the batch; where no loss needs
                          ///< that, the same as `view`
  const Output* teacher = nullptr;  ///< another network's answer to it, without gradient
  const Output* source = nullptr;   ///< the source model's answer to it, without gradient
  const Output* view = nullptr;     ///< the adapting network's answer to the batch seen otherwise
  at::Tensor weights = {};          ///< of the images, [N]; undefined: 1 each
  /// Numbers of the images that `view` is about; undefined: all of them. Behind those that count there may be
  /// others, of weight 0.
  at::Tensor rows = {};
};

/// Which images a loss wants to see a second time.
enum class SecondLook {
  kNone,
  kCounted,  ///< those that count, by themselves: their number is known only when they are seen
  kAll
};

/// What a loss asks for beside the student's answer.
struct LossNeeds {
  bool teacher = false;
  bool source = false;
  bool images = true;  ///< the student's answer to the images as they are
  SecondLook view = SecondLook::kNone;
  int looks = 1;  ///< by the view, at each image: its answers stand look by look
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
/// `text` is a spec, or several with plus signs between them: their sum. The first of them says what
/// `confident` counts and whether the head adapts.
std::unique_ptr<Loss> make_loss(std::string_view text);

}  // namespace gala
