#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/loss/part.h"

namespace gala {

/// Makes the answer from the logits: a correction by the classes seen, smoothing between neighbours,
/// prototypes in place of the head.
class Readout : public Part {
 public:
  static constexpr std::string_view kKind = "readout";

  /// Of the logits [N, C] that would answer, which stay as they are; a row that is not finite stays so.
  /// Images that are asked again for that reason are answered without it.
  virtual at::Tensor correct(const at::Tensor& logits) = 0;
};

std::span<const RegistryEntry<Readout>> readout_registry();
std::unique_ptr<Readout> make_readout(const Spec& spec);

}  // namespace gala
