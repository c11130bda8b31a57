#pragma once
#include <vector>

#include "gala/adapt/method_options.h"
#include "gala/loss/loss.h"
#include "gala/model/model.h"
#include "gala/model/partition.h"
#include "gala/select/selector.h"

namespace gala {

/// Which parameters of a model adapt, in which layers.
struct Fit {
  std::vector<Parameter*> adapted;  ///< in forward order
  LayerPartition layers;
  Granularity granularity = Granularity::kModule;
  bool head = true;  ///< whether the classifier is among them, where the partition has it
};

/// Decides what adapts, introduces the selector to its layers, and says (ConfigError) what of it does
/// not fit together. The model stays as it is.
Fit fit(Model& model, const MethodOptions& options, const Loss& loss, Selector& selector);

}  // namespace gala
