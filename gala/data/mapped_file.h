#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

namespace gala {

/// A file seen as memory, read only. Throws FormatError when it cannot be opened or is not a plain
/// file. The file must not shrink while it is mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace gala
