#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/loss/part.h"
#include "gala/model/model.h"

namespace gala {

/// Makes the answer from the logits: a correction by the classes seen, smoothing between neighbours,
/// prototypes in place of the head.
class Readout : public Part {
 public:
  static constexpr std::string_view kKind = "readout";

  /// Learns the network, once, before anything else.
  virtual void attach(const Model&) {}
  /// Of the logits [N, C] that would answer, and the student's features, which stay as they are; a row
  /// that is not finite stays so. Images that are asked again for that reason are answered without it.
  virtual at::Tensor correct(const Output& output) = 0;
};

std::span<const RegistryEntry<Readout>> readout_registry();
std::unique_ptr<Readout> make_readout(const Spec& spec);

}  // namespace gala
