#pragma once
#include <filesystem>
#include <vector>

#include "gala/tensor/arena.h"

namespace gala {

/// Reads the tensors of a file written by `torch.save` (the zip format), in the order of its
/// dictionary, through a pickle reader that knows plain containers, numbers, strings and dense
/// tensors. Nothing in the file is ever executed: other objects are passed over. The dictionary of
/// tensors may be the whole or lie under `state_dict`, `model_state_dict`, `model`, `net` or
/// `params`; a `module.` prefix that all names share is taken off. Tensors are views of the file in
/// their own strides, share memory where they did, and must not be written to. Throws FormatError.
std::vector<NamedTensor> read_torch_checkpoint(const std::filesystem::path& path);

}  // namespace gala
