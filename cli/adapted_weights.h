#pragma once
#include <filesystem>

#include "gala/model/model.h"

namespace gala {

/// Writes what `--save-weights` asks for. Throws Error, and writes nothing, where the weights are of no
/// use: not finite, or so large that no answer is.
void save_adapted_weights(Model& model, const std::filesystem::path& path);

}  // namespace gala
