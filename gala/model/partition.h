#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "gala/model/model.h"
#include "gala/tensor/arena.h"
#include "gala/tensor/layer.h"

namespace gala {

/// Which parameters may adapt at all.
struct ParameterFilter {
  bool head = true;                    ///< the last linear layer too
  bool norms = true;                   ///< norm scale and shift too
  bool others = true;                  ///< everything that is not a norm too
  std::vector<std::string> include{};  ///< patterns on tensor or module names; empty: everything
  std::vector<std::string> exclude{};
};

/// The parameters that pass, in forward order; with `block` the head never does. Throws ConfigError
/// when a pattern matches nothing or nothing is left.
std::vector<Parameter*> adapted_parameters(Model& model, const ParameterFilter& filter,
                                           Granularity granularity);

/// The layers of an arena made from exactly these parameters, in this order.
LayerPartition make_partition(const std::vector<Parameter*>& parameters, Granularity granularity);

/// True when `name` fits the pattern: `*` any characters, `?` one, the rest itself.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace gala
