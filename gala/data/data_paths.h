#pragma once
#include <string_view>

#include "gala/base/spec.h"

namespace gala {

/// True when an option of a data spec names a file or a folder.
bool is_data_path(std::string_view key);

/// The spec with every path spelled in the one canonical way: equal for the same
/// files, from whatever folder and by whatever links they were named.
Spec with_canonical_paths(Spec spec);

}  // namespace gala
