#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace gala {

/// A whole file in memory by a private map: writing to it never reaches the file.
class MappedFile {
 public:
  /// Throws FormatError when the path is no readable regular file.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<unsigned char> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::span<unsigned char> bytes)
      : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  std::span<unsigned char> bytes_;
};

}  // namespace gala
