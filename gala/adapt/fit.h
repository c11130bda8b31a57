#pragma once
#include <vector>

#include "gala/method/method_options.h"
#include "gala/method/method_parts.h"
#include "gala/model/model.h"
#include "gala/model/partition.h"

namespace gala {

/// Which parameters of a model adapt, in which layers.
struct Fit {
  std::vector<Parameter*> adapted;  ///< in forward order
  LayerPartition layers;
  Granularity granularity = Granularity::kModule;
  bool head = true;  ///< whether the classifier is among them, where the partition has it
};

/// Decides what adapts, introduces the selector to its layers, and says (ConfigError) what of the method does
/// not fit together. Loss, optimizer and selector must be there. `has_source_images`: whether there are some for parts
/// that learn from them. The model stays as it is.
Fit fit(Model& model, const MethodOptions& options, const MethodParts& parts,
        bool has_source_images);

}  // namespace gala
