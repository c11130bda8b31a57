#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "gala/base/input_file.h"
#include "gala/model/raw_tensor.h"

namespace gala {

/// Reads the entries of a zip archive in memory: stored or deflated ones, with zip64. Nothing the
/// archive says is believed before it is checked; every failure is a FormatError.
class ZipReader {
 public:
  struct Entry {
    std::uint64_t header = 0;  ///< where its local header begins
    std::uint64_t begin = 0;   ///< where its bytes begin
    std::uint64_t packed_size = 0;
    std::uint64_t size = 0;  ///< after unpacking
    std::uint32_t checksum = 0;
    std::uint16_t method = 0;
  };

  explicit ZipReader(std::shared_ptr<const FileContent> file);

  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// The content of an entry, whose checksum is right. Stored entries are not copied.
  Blob read(std::string_view name) const;

 private:
  struct Directory {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t count = 0;
  };

  [[noreturn]] void refuse(const std::string& problem) const;
  /// `size` bytes at `offset` if they lie inside the file.
  const unsigned char* at(std::uint64_t offset, std::uint64_t size) const;
  Directory find_directory() const;
  Directory find_zip64_directory(std::uint64_t locator) const;
  /// Reads one directory entry at `offset`, which moves on to the next.
  void read_entry(const Directory& directory, std::uint64_t& offset);
  void locate_bytes(const Directory& directory, const std::string& name, Entry& entry) const;
  void refuse_overlaps() const;
  Blob inflate(std::string_view name, const Entry& entry) const;

  std::shared_ptr<const FileContent> file_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace gala
