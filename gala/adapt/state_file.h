#pragma once
#include <filesystem>

#include "gala/tensor/state.h"

namespace gala {

/// Writes a state as safetensors with its values and a checksum of everything in the metadata,
/// atomically: a reader or a crash sees the old file or the whole new one. Equal states give equal
/// bytes.
void write_state(const std::filesystem::path& path, const State& state);

/// Throws FormatError when the file is not a state, or not as it was written: values and tensors are
/// compared with their checksum.
State read_state(const std::filesystem::path& path);

}  // namespace gala
