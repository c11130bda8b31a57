#pragma once
#include <span>
#include <string_view>

#include "gala/base/spec.h"

namespace gala {

/// The options of a data set that name files or folders: those that its options struct lists as
/// `kPaths`. Empty for a set that is not known.
std::span<const std::string_view> data_paths(std::string_view set);

/// The spec with every path spelled in the one canonical way: equal for the same
/// files, from whatever folder and by whatever links they were named.
Spec with_canonical_paths(Spec spec);

/// The spec without these options, which say where things lie on this machine.
Spec without_paths(Spec spec, std::span<const std::string_view> paths);

}  // namespace gala
