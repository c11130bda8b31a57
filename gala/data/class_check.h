#pragma once
#include <span>
#include <string>
#include <vector>

#include "gala/data/stream.h"
#include "gala/model/model.h"

namespace gala {

/// Throws ConfigError when labels go beyond the head of the network, or a data set with named
/// classes has another number of them.
void check_classes(const DataSource& source, const Model& model);

/// What to say of the classes in a stream over `source`: that data and weights both name them and the
/// names differ, or that they come one after the other and it was not asked for. Mostly nothing.
std::vector<std::string> class_warnings(const DataSource& source, const Stream& stream,
                                        std::span<const std::string> known);

}  // namespace gala
