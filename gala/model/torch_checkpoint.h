#pragma once
#include <filesystem>
#include <vector>

#include "gala/tensor/arena.h"

namespace gala {

/// Reads the tensors of a file written by `torch.save` (the zip format), with a pickle reader that
/// knows plain containers, numbers, strings and tensors and refuses everything else: nothing in the
/// file is ever executed. A dictionary under `state_dict`, `model` or `net` is looked into, and a
/// `module.` prefix that all names share is taken off. Throws FormatError.
std::vector<NamedTensor> read_torch_checkpoint(const std::filesystem::path& path);

}  // namespace gala
