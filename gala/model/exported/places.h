#pragma once
#include <deque>
#include <string>

#include "gala/model/model.h"

namespace gala::exported {

/// "layer1.0.conv1" for layer1.0.conv1.weight; a parameter of the network itself is its own module.
std::string module_of_parameter(const std::string& name);

/// Gives every parameter outside the head its block, by names alone. A family is what is numbered below
/// one parent: layer1, layer2, ... or stages.0, stages.1, ... or encoder.layers.encoder_layer_0, ...; the
/// one that holds the most values is the network's, and each of its members is a block, in forward order.
/// What comes before the first member joins block 1, everything else outside the family the block before
/// it. A network without a family is one block.
void assign_blocks(std::deque<Parameter>& parameters);

}  // namespace gala::exported
