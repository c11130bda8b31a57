#include "gala/model/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "gala/base/error.h"

namespace gala {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kEntrySignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocatorSignature = 0x07064b50;
constexpr std::uint64_t kLocalSize = 30, kEntrySize = 46, kEndSize = 22, kEnd64Size = 56,
                        kLocatorSize = 20;
constexpr std::uint16_t kStored = 0, kDeflated = 8;
// Deflate cannot do better than 258 bytes for 2 bits.
constexpr std::uint64_t kLargestRatio = 1032;
/// Packed entries may hold so much in all, and so many times the archive's size more. Weights hardly
/// pack at all; what unpacks to hundreds of times its size is made to fill the memory.
constexpr std::uint64_t kAlwaysUnpacked = 64u << 20, kMostUnpacked = 20;

template <class Number>
Number number_at(const unsigned char* bytes) {
  Number value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

/// The 64-bit values an entry's extra field gives for those that read 0xffffffff, in their fixed
/// order. False when one is missing.
bool widen(const unsigned char* extra, std::size_t length, std::vector<std::uint64_t*> narrow) {
  std::erase_if(narrow, [](const std::uint64_t* value) {
    return *value != std::numeric_limits<std::uint32_t>::max();
  });
  if (narrow.empty()) return true;
  constexpr std::uint16_t kZip64Field = 1;
  for (std::size_t at = 0; at + 4 <= length;) {
    const auto kind = number_at<std::uint16_t>(extra + at);
    const std::size_t size = number_at<std::uint16_t>(extra + at + 2);
    at += 4;
    if (size > length - at) return false;
    if (kind == kZip64Field) {
      if (size < 8 * narrow.size()) return false;
      for (std::uint64_t* value : narrow) {
        *value = number_at<std::uint64_t>(extra + at);
        at += 8;
      }
      return true;
    }
    at += size;
  }
  return false;
}

}  // namespace

void ZipReader::refuse(const std::string& problem) const {
  throw FormatError(file_->path(), "damaged zip archive: " + problem);
}

const unsigned char* ZipReader::at(std::uint64_t offset, std::uint64_t size) const {
  const auto bytes = file_->bytes();
  if (offset > bytes.size() || size > bytes.size() - offset) {
    refuse(fmt::format("{} bytes at {} go past its end ({} bytes): is the file cut off?", size,
                       offset, bytes.size()));
  }
  return bytes.data() + offset;
}

ZipReader::ZipReader(std::shared_ptr<const FileContent> file) : file_(std::move(file)) {
  const Directory directory = find_directory();
  std::uint64_t offset = directory.begin;
  for (std::uint64_t i = 0; i < directory.count; ++i) read_entry(directory, offset);
  refuse_overlaps();
}

ZipReader::Directory ZipReader::find_directory() const {
  const std::uint64_t size = file_->bytes().size();
  constexpr std::uint64_t kLongestComment = 65535;
  std::uint64_t end = size;
  for (std::uint64_t back = kEndSize; back <= std::min(size, kEndSize + kLongestComment); ++back) {
    const unsigned char* record = at(size - back, kEndSize);
    if (number_at<std::uint32_t>(record) == kEndSignature &&
        number_at<std::uint16_t>(record + 20) == back - kEndSize) {
      end = size - back;
      break;
    }
  }
  if (end == size) refuse("its directory is missing: is the file cut off?");
  const unsigned char* record = at(end, kEndSize);
  if (end >= kLocatorSize &&
      number_at<std::uint32_t>(at(end - kLocatorSize, 4)) == kLocatorSignature) {
    return find_zip64_directory(end - kLocatorSize);
  }
  if (number_at<std::uint16_t>(record + 4) != 0 || number_at<std::uint16_t>(record + 6) != 0) {
    refuse("it is one of several parts");
  }
  Directory directory;
  directory.count = number_at<std::uint16_t>(record + 10);
  directory.begin = number_at<std::uint32_t>(record + 16);
  directory.end = directory.begin + number_at<std::uint32_t>(record + 12);
  if (directory.end > end) refuse("its directory does not end where it should");
  return directory;
}

ZipReader::Directory ZipReader::find_zip64_directory(std::uint64_t locator) const {
  const auto offset = number_at<std::uint64_t>(at(locator, kLocatorSize) + 8);
  const unsigned char* record = at(offset, kEnd64Size);
  if (number_at<std::uint32_t>(record) != kEnd64Signature) {
    refuse("its 64-bit directory is not where it should be");
  }
  if (number_at<std::uint32_t>(record + 16) != 0 || number_at<std::uint32_t>(record + 20) != 0) {
    refuse("it is one of several parts");
  }
  Directory directory;
  directory.count = number_at<std::uint64_t>(record + 32);
  directory.begin = number_at<std::uint64_t>(record + 48);
  const auto size = number_at<std::uint64_t>(record + 40);
  if (directory.begin > offset || size > offset - directory.begin) {
    refuse("its directory does not end where it should");
  }
  directory.end = directory.begin + size;
  return directory;
}

void ZipReader::read_entry(const Directory& directory, std::uint64_t& offset) {
  if (offset > directory.end || directory.end - offset < kEntrySize) {
    refuse(fmt::format("its directory should hold {} entries and ends after {}", directory.count,
                       entries_.size()));
  }
  const unsigned char* record = at(offset, kEntrySize);
  if (number_at<std::uint32_t>(record) != kEntrySignature) refuse("its directory is garbled");
  const std::uint64_t name_length = number_at<std::uint16_t>(record + 28);
  const std::uint64_t extra_length = number_at<std::uint16_t>(record + 30);
  const std::uint64_t comment_length = number_at<std::uint16_t>(record + 32);
  const std::uint64_t length = kEntrySize + name_length + extra_length + comment_length;
  if (length > directory.end - offset) refuse("its directory is garbled");
  record = at(offset, length);
  const std::string name(reinterpret_cast<const char*>(record + kEntrySize), name_length);

  Entry entry;
  entry.method = number_at<std::uint16_t>(record + 10);
  entry.checksum = number_at<std::uint32_t>(record + 16);
  entry.packed_size = number_at<std::uint32_t>(record + 20);
  entry.size = number_at<std::uint32_t>(record + 24);
  entry.header = number_at<std::uint32_t>(record + 42);
  if (!widen(record + kEntrySize + name_length, extra_length,
             {&entry.size, &entry.packed_size, &entry.header})) {
    refuse(fmt::format("entry \"{}\" lacks its 64-bit sizes", name));
  }
  constexpr std::uint16_t kEncrypted = 1;
  if (number_at<std::uint16_t>(record + 8) & kEncrypted) {
    refuse(fmt::format("entry \"{}\" is encrypted", name));
  }
  if (entry.method != kStored && entry.method != kDeflated) {
    refuse(fmt::format("entry \"{}\" is packed by method {} (only stored and deflated are read)",
                       name, entry.method));
  }
  if (entry.method == kStored && entry.size != entry.packed_size) {
    refuse(fmt::format("entry \"{}\" is stored, but has two sizes: {} and {}", name,
                       entry.packed_size, entry.size));
  }
  locate_bytes(directory, name, entry);
  if (!entries_.emplace(name, entry).second) refuse(fmt::format("entry \"{}\" comes twice", name));
  offset += length;
}

void ZipReader::locate_bytes(const Directory& directory, const std::string& name,
                             Entry& entry) const {
  const unsigned char* local = at(entry.header, kLocalSize);
  const std::uint64_t name_length = number_at<std::uint16_t>(local + 26);
  const std::uint64_t extra_length = number_at<std::uint16_t>(local + 28);
  if (number_at<std::uint32_t>(local) != kLocalSignature || name_length != name.size() ||
      std::memcmp(at(entry.header + kLocalSize, name_length), name.data(), name_length) != 0) {
    refuse(fmt::format("entry \"{}\" is not where the directory says", name));
  }
  entry.begin = entry.header + kLocalSize + name_length + extra_length;
  if (entry.begin > directory.begin || entry.packed_size > directory.begin - entry.begin) {
    refuse(
        fmt::format("entry \"{}\" of {} bytes goes into the directory", name, entry.packed_size));
  }
}

void ZipReader::refuse_overlaps() const {
  std::vector<const Entry*> by_place;
  std::uint64_t unpacked = 0;
  const std::uint64_t most = kAlwaysUnpacked + kMostUnpacked * file_->bytes().size();
  for (const auto& [name, entry] : entries_) {
    by_place.push_back(&entry);
    if (entry.method == kStored) continue;
    if (entry.size > most - unpacked) {
      refuse(fmt::format("its entries would unpack to more than {} bytes", most));
    }
    unpacked += entry.size;
  }
  std::sort(by_place.begin(), by_place.end(),
            [](const Entry* a, const Entry* b) { return a->header < b->header; });
  for (std::size_t i = 1; i < by_place.size(); ++i) {
    if (by_place[i - 1]->begin + by_place[i - 1]->packed_size > by_place[i]->header) {
      refuse("two of its entries share bytes");
    }
  }
}

Blob ZipReader::read(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) refuse(fmt::format("entry \"{}\" is missing", name));
  const Entry& entry = found->second;
  const Blob blob = entry.method == kDeflated
                        ? inflate(name, entry)
                        : Blob{file_->bytes().subspan(entry.begin, entry.size), file_};
  if (crc32_z(0, blob.bytes.data(), blob.bytes.size()) != entry.checksum) {
    refuse(fmt::format("the checksum of entry \"{}\" is wrong", name));
  }
  return blob;
}

Blob ZipReader::inflate(std::string_view name, const Entry& entry) const {
  if (entry.size / kLargestRatio > entry.packed_size) {
    refuse(fmt::format("entry \"{}\" cannot unpack from {} to {} bytes", name, entry.packed_size,
                       entry.size));
  }
  // One byte more than needed shows an entry that unpacks to more than it says.
  const auto content = std::make_shared<std::vector<unsigned char>>(entry.size + 1);
  z_stream stream{};
  constexpr int kNoHeader = -MAX_WBITS;
  if (inflateInit2(&stream, kNoHeader) != Z_OK) refuse("zlib cannot start");
  constexpr std::uint64_t kPiece = 1u << 30;
  std::uint64_t taken = 0, given = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const auto input = std::min(entry.packed_size - taken, kPiece);
    const auto output = std::min(content->size() - given, kPiece);
    stream.next_in = file_->bytes().data() + entry.begin + taken;
    stream.avail_in = static_cast<uInt>(input);
    stream.next_out = content->data() + given;
    stream.avail_out = static_cast<uInt>(output);
    status = ::inflate(&stream, Z_NO_FLUSH);
    taken += input - stream.avail_in;
    given += output - stream.avail_out;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || given != entry.size || taken != entry.packed_size) {
    refuse(fmt::format("entry \"{}\" does not unpack to its {} bytes", name, entry.size));
  }
  return {{content->data(), entry.size}, content};
}

}  // namespace gala
