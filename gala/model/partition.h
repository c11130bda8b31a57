#pragma once
#include <vector>

#include "gala/layer/filter.h"
#include "gala/layer/layer.h"
#include "gala/model/model.h"

namespace gala {

/// The parameters that pass, in forward order; with `block` the head never does. Throws ConfigError
/// when a pattern matches nothing or nothing is left.
std::vector<Parameter*> adapted_parameters(Model& model, const ParameterFilter& filter,
                                           Granularity granularity);

/// The layers of an arena made from exactly these parameters, in this order.
LayerPartition make_partition(const std::vector<Parameter*>& parameters, Granularity granularity);

}  // namespace gala
