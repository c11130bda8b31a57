#include "gala/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "gala/base/error.h"

namespace gala {
namespace {

/// 0, or the error: some file systems only notice here that there is no room.
int sync_to_disk(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int problem = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return problem;
}

/// A device or a pipe, such as /dev/null: it cannot be renamed over.
bool is_special(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_other(path, ignored);
}

/// What only its owner could read stays so when it is replaced.
void keep_mode(const std::filesystem::path& old, const std::filesystem::path& fresh) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(old, ignored);
  if (!fs::is_regular_file(status)) return;
  const fs::perms mode = status.permissions() & (fs::perms::owner_read | fs::perms::owner_write |
                                                 fs::perms::group_read | fs::perms::group_write |
                                                 fs::perms::others_read | fs::perms::others_write);
  fs::permissions(fresh, mode | fs::perms::owner_read | fs::perms::owner_write, ignored);
}

void write_through(const std::filesystem::path& path,
                   const std::function<void(std::ostream&)>& write) {
  std::ofstream out(path, std::ios::binary);
  if (!out) fail("{}: cannot be written: {}", path.string(), std::strerror(errno));
  write(out);
  out.close();
  if (!out) fail("{}: writing failed (is the disk full?)", path.string());
}

}  // namespace

void write_atomically(const std::filesystem::path& given,
                      const std::function<void(std::ostream&)>& write) {
  if (is_special(given)) return write_through(given, write);
  std::error_code ignored;
  // A link stays one: what it points to is replaced.
  const std::filesystem::path path =
      std::filesystem::is_symlink(std::filesystem::symlink_status(given, ignored))
          ? canonical_path(given)
          : given;
  std::filesystem::path partial = path;
  partial += fmt::format(".partial.{}", ::getpid());
  try {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    if (!out) fail("{}: cannot be written: {}", path.string(), std::strerror(errno));
    keep_mode(path, partial);
    write(out);
    out.close();
    if (!out) fail("{}: writing failed (is the disk full?)", path.string());
    if (const int problem = sync_to_disk(partial); problem != 0) {
      fail("{}: writing failed: {}", path.string(), std::strerror(problem));
    }
    std::error_code problem;
    std::filesystem::rename(partial, path, problem);
    if (problem) fail("{}: cannot be written: {}", path.string(), problem.message());
    sync_to_disk(path.has_parent_path() ? path.parent_path() : ".");  // not all folders can be
  } catch (...) {
    std::filesystem::remove(partial, ignored);
    throw;
  }
}

void require_writable(const std::filesystem::path& path, std::string_view flag) {
  const auto refuse = [&](std::string_view why) {
    fail<ConfigError>("{} {}: cannot be written: {}", flag, path.string(), why);
  };
  if (path.empty()) refuse("the path is empty");
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path, problem);
  // Such as a link that leads to itself.
  if (status.type() == std::filesystem::file_type::none) refuse(problem.message());
  if (std::filesystem::is_directory(status)) refuse("it is a folder");
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) != 0) refuse(std::strerror(errno));
    return;
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, problem)) {
    refuse("there is no folder " + folder.string());
  }
  if (::access(folder.c_str(), W_OK) != 0) refuse(std::strerror(errno));
  if (std::filesystem::exists(status) && ::access(path.c_str(), W_OK) != 0) {
    refuse(std::strerror(errno));
  }
}

std::filesystem::path canonical_path(const std::filesystem::path& path) {
  std::error_code problem;
  // Absolute first: of a relative path without an existing part nothing would be resolved.
  const std::filesystem::path absolute = std::filesystem::absolute(path, problem);
  if (problem) return path;
  const std::filesystem::path place = std::filesystem::weakly_canonical(absolute, problem);
  return problem ? absolute.lexically_normal() : place;
}

}  // namespace gala
