#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/tensor/arena.h"

namespace gala {

/// Where the gradient of a step is taken: not at the parameters, but at a place near them. Both
/// functions are part of a pass, which may be captured: they only queue work.
class Perturbation {
 public:
  static constexpr std::string_view kKind = "perturbation";
  virtual ~Perturbation() = default;

  /// Moves the parameters there, by their gradients.
  virtual void leave(const ParameterArena& parameters, const Gradients& gradients) = 0;
  /// Puts them back, bit for bit.
  virtual void come_back(const ParameterArena& parameters) = 0;
};

std::span<const RegistryEntry<Perturbation>> perturbation_registry();
std::unique_ptr<Perturbation> make_perturbation(const Spec& spec);

}  // namespace gala
