#pragma once
#include <span>
#include <string>

#include "gala/data/stream.h"
#include "gala/model/model.h"

namespace gala {

/// Throws ConfigError when labels go beyond the head of the network, or a data set with named
/// classes has another number of them.
void check_classes(const DataSource& source, const Model& model);

/// What to say when both data and weights name their classes and the names differ; else empty.
std::string class_name_warning(const DataSource& source, std::span<const std::string> known);

/// What to say when a stream brings class after class and that was not asked for; else empty.
std::string class_order_warning(const Stream& stream);

}  // namespace gala
