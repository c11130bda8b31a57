#include "gala/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>

#include "gala/base/error.h"

namespace gala {

InputFile::InputFile(const std::filesystem::path& path) : path_(path.string()) {
  // Not blocking: a pipe without a writer must not hang the program.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    throw FormatError(path_, fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  struct stat info {};
  std::string problem;
  if (::fstat(descriptor_, &info) != 0) {
    problem = std::strerror(errno);
  } else if (S_ISDIR(info.st_mode)) {
    problem = "is a folder, not a file";
  } else if (!S_ISREG(info.st_mode)) {
    problem = "is not a regular file";
  }
  if (!problem.empty()) {
    ::close(descriptor_);
    throw FormatError(path_, problem);
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FormatError(path_, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (got == 0) {
      throw FormatError(path_, fmt::format("the file became shorter while it was read (it had {} "
                                           "bytes, and there are none behind {})",
                                           size_, offset));
    }
    offset += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

std::shared_ptr<const FileContent> FileContent::read(const std::filesystem::path& path) {
  const InputFile file(path);
  const std::shared_ptr<FileContent> content(new FileContent);
  content->path_ = file.path();
  content->size_ = static_cast<std::size_t>(file.size());
  content->memory_.reset(new (std::nothrow) unsigned char[content->size_]);
  if (!content->memory_) {
    throw FormatError(file.path(),
                      fmt::format("its {} bytes are too many for the memory", file.size()));
  }
  file.read(0, std::as_writable_bytes(content->bytes()));
  return content;
}

std::string read_text(const std::filesystem::path& path) {
  std::error_code problem;
  if (std::filesystem::is_directory(path, problem)) {
    throw FormatError(path.string(), "is a folder, not a file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw FormatError(path.string(), fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  std::ostringstream text;
  if (!(text << file.rdbuf())) throw FormatError(path.string(), "is empty, or cannot be read");
  return text.str();
}

}  // namespace gala
