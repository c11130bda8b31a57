#pragma once
#include <cstdint>
#include <string>

#include "gala/method/penalty.h"
#include "gala/model/model.h"

namespace gala {

/// The images that a data spec names, as the network wants them, in the order in which they are stored;
/// nothing for an empty spec. Throws ConfigError and FormatError.
SourceImages open_source_images(const std::string& spec, const Model& model,
                                std::int64_t batch_size);

}  // namespace gala
