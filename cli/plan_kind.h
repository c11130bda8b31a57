#pragma once
#include <filesystem>

namespace gala {

/// The two kinds of plans, which are both TOML.
enum class PlanKind {
  kExperiment,  ///< `gala run`
  kTraining     ///< `gala train`
};

/// Throws ConfigError, with the command that takes it, where the file is a plan of the other kind. Of a file
/// that cannot be read, or is neither, its reader will say more.
void refuse_other_plan(const std::filesystem::path& path, PlanKind wanted);

}  // namespace gala
