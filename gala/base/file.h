#pragma once
#include <filesystem>
#include <functional>
#include <ostream>
#include <string_view>

namespace gala {

/// Writes a file so that readers see the old content or the whole new one, never a half: a temporary
/// file beside it, synced to disk, then renamed over it. Throws Error when it cannot be done; then
/// nothing of the new content is left behind. A link stays one; to a device or a pipe it is written
/// straight.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write);

/// Throws ConfigError, naming `flag`, when a file cannot be made at `path`. Leaves no trace.
/// Called before the work, so that nobody learns after an hour that the result has no place.
void require_writable(const std::filesystem::path& path, std::string_view flag);

/// The one spelling of a path: absolute, without links as far as it exists. Never throws: a path that
/// cannot be followed keeps its own spelling.
std::filesystem::path canonical_path(const std::filesystem::path& path);

}  // namespace gala
