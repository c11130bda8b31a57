#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gala/tensor/arena.h"

namespace gala {

/// The content of a safetensors file.
struct Safetensors {
  std::vector<NamedTensor> tensors;             ///< in file order
  std::map<std::string, std::string> metadata;  ///< the header's `__metadata__`
};

/// Reads by memory map; tensors keep the map alive and must not be written to. Throws FormatError for
/// anything that is not a well-formed file.
Safetensors read_safetensors(const std::filesystem::path& path);

/// Writes contiguous little-endian tensors, atomically. Equal input gives equal bytes.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace gala
