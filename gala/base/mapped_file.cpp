#include "gala/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gala/base/error.h"

namespace gala {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() { ::close(number); }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const std::string name = path.string();
  // Not blocking: a pipe without a writer must not hang the program.
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0) {
    throw FormatError(name, fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  const Descriptor descriptor{number};
  struct stat info {};
  if (::fstat(number, &info) != 0) throw FormatError(name, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) throw FormatError(name, "is a folder, not a file");
  if (!S_ISREG(info.st_mode)) throw FormatError(name, "is not a regular file");
  const auto size = static_cast<std::size_t>(info.st_size);
  unsigned char* address = nullptr;
  if (size > 0) {
    void* map =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, number, 0);
    if (map == MAP_FAILED) {
      throw FormatError(name, fmt::format("cannot be mapped: {}", std::strerror(errno)));
    }
    address = static_cast<unsigned char*>(map);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(name, {address, size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace gala
