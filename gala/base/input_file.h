#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace gala {

/// A regular file that is read piece by piece. Nothing is mapped into memory: a mapped file that
/// becomes shorter, or whose disk fails, ends the program by a signal, and here it is an error.
class InputFile {
 public:
  /// Throws FormatError when the path is no readable regular file.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  /// In bytes, when it was opened.
  std::uint64_t size() const { return size_; }

  /// Fills `into` with the bytes from `offset` on. Threads may read at once. Throws FormatError when
  /// they cannot be read, or are no longer there.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The whole of a file in memory, beginning at a multiple of 16. Writing to the bytes never reaches
/// the file.
class FileContent {
 public:
  /// Throws FormatError when the path is no readable regular file, or memory does not hold it.
  static std::shared_ptr<const FileContent> read(const std::filesystem::path& path);

  std::span<unsigned char> bytes() const { return {memory_.get(), size_}; }
  const std::string& path() const { return path_; }

 private:
  FileContent() = default;
  std::string path_;
  std::unique_ptr<unsigned char[]> memory_;
  std::size_t size_ = 0;
};

/// The whole of a text; unlike the others also from a pipe. Throws FormatError when there is none.
std::string read_text(const std::filesystem::path& path);

}  // namespace gala
