#include "cli/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/words.h"

namespace gala {
namespace {

/// As a state holds it.
std::string stored_path(const std::filesystem::path& path) {
  return as_utf8(canonical_path(path).string());
}

}  // namespace

LineFile::~LineFile() {
  if (is_open()) ::close(descriptor_);
}

LineFile::LineFile(LineFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      written_(other.written_),
      pending_(std::move(other.pending_)) {}

void LineFile::open_with(const std::filesystem::path& path, int flags) {
  path_ = path;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (!is_open()) fail("{}: cannot be written: {}", path.string(), std::strerror(errno));
}

void LineFile::open(const std::filesystem::path& path) {
  open_with(path, O_TRUNC);
}

void LineFile::reopen(const std::filesystem::path& path, const nlohmann::json& position) {
  std::error_code problem;
  const bool device = std::filesystem::is_other(path, problem);
  const bool same = position.value("path", nlohmann::json()) == stored_path(path);
  const auto bytes = position.value("bytes", std::uintmax_t{0});
  if (device || !same) {
    open(path);
  } else {
    const std::uintmax_t found = std::filesystem::file_size(path, problem);
    if (problem || found < bytes) {
      fail<ConfigError>(
          "{}: the interrupted run had written {} bytes of it, which are no longer there",
          path.string(), bytes);
    }
    open_with(path, O_APPEND);
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
      fail("{}: cannot be cut off where the run was saved: {}", path.string(),
           std::strerror(errno));
    }
    written_ = bytes;
  }
  // Behind bytes that another file has they may begin in the middle of a line.
  if (same || bytes == 0) pending_ = position.value("pending", "");
}

void LineFile::write(const std::string& line) {
  pending_ += line;
  pending_ += '\n';
}

void LineFile::flush() {
  if (!is_open()) return;
  std::size_t taken = 0;
  int problem = 0;
  while (taken < pending_.size() && problem == 0) {
    const ssize_t count = ::write(descriptor_, pending_.data() + taken, pending_.size() - taken);
    if (count >= 0) {
      taken += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      problem = errno;
    }
  }
  written_ += taken;
  pending_.erase(0, taken);
  if (problem == ENOSPC || problem == EDQUOT || problem == EFBIG) {
    fail("{}: writing failed (is the disk full?)", path_.string());
  }
  if (problem != 0) fail("{}: writing failed: {}", path_.string(), std::strerror(problem));
}

nlohmann::json LineFile::position() const {
  if (!is_open()) return nlohmann::json::object();
  nlohmann::json position = {{"path", stored_path(path_)}, {"bytes", written_}};
  if (!pending_.empty()) position["pending"] = pending_;
  return position;
}

}  // namespace gala
