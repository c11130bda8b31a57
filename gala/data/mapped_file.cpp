#include "gala/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gala/base/error.h"

namespace gala {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    throw FormatError(path.string(), fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  struct stat status {};
  std::string problem;
  if (::fstat(file, &status) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    problem = "not a plain file";
  } else if (status.st_size > 0) {
    size_ = static_cast<std::size_t>(status.st_size);
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) {
      problem = std::strerror(errno);
    } else {
      data_ = static_cast<const std::byte*>(mapped);
    }
  }
  ::close(file);
  if (!problem.empty()) throw FormatError(path.string(), "cannot be read: " + problem);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace gala
