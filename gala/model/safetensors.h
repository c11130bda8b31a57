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

/// Reads the whole file. Throws FormatError for anything that is not a well-formed one.
Safetensors read_safetensors(const std::filesystem::path& path);

/// The metadata alone; the tensors' places are checked and their bytes are not read.
std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path);

/// Writes contiguous little-endian tensors, atomically. Equal input gives equal bytes.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace gala
