#pragma once
// Zip archives and pickles made piece by piece, so that each piece can be wrong.
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gala::testing {

template <class Number>
std::string little_endian(Number value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

inline std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

/// What an entry says about itself where that is not the truth.
struct ZipLie {
  std::optional<std::uint32_t> checksum{}, packed_size{}, size{}, header{};
  std::uint16_t method = 0, flags = 0;
  std::string extra{};  ///< of the directory's entry
};

class ZipBuilder {
 public:
  ZipBuilder& add(const std::string& name, std::string_view content, const ZipLie& lie = {}) {
    const auto header = lie.header.value_or(static_cast<std::uint32_t>(body_.size()));
    const auto shared = little_endian<std::uint16_t>(20) + little_endian(lie.flags) +
                        little_endian(lie.method) + little_endian<std::uint32_t>(0) +
                        little_endian(lie.checksum.value_or(crc32_of(content))) +
                        little_endian(lie.packed_size.value_or(content.size())) +
                        little_endian(lie.size.value_or(content.size())) +
                        little_endian<std::uint16_t>(name.size());
    body_ += std::string("PK\x03\x04") + shared + little_endian<std::uint16_t>(0) + name +
             std::string(content);
    directory_ += std::string("PK\x01\x02") + little_endian<std::uint16_t>(20) + shared +
                  little_endian<std::uint16_t>(lie.extra.size()) + std::string(10, '\0') +
                  little_endian(header) + name + lie.extra;
    ++count_;
    return *this;
  }

  std::string finish(const std::string& comment = "") const {
    return body_ + directory_ + "PK\x05\x06" + std::string(4, '\0') + little_endian(count_) +
           little_endian(count_) + little_endian<std::uint32_t>(directory_.size()) +
           little_endian<std::uint32_t>(body_.size()) +
           little_endian<std::uint16_t>(comment.size()) + comment;
  }

 private:
  std::string body_, directory_;
  std::uint16_t count_ = 0;
};

namespace pickle {

inline std::string text(std::string_view value) {
  return std::string("X") + little_endian<std::uint32_t>(value.size()) + std::string(value);
}
inline std::string integer(std::int64_t value) {
  return std::string("\x8a\x08") + little_endian(value);
}
inline std::string tuple(const std::vector<std::int64_t>& values) {
  std::string code = "(";
  for (const auto value : values) code += integer(value);
  return code + "t";
}
inline std::string storage(std::int64_t elements, std::string_view type = "FloatStorage",
                           std::string_view key = "0") {
  return std::string("(") + text("storage") + "ctorch\n" + std::string(type) + "\n" + text(key) +
         text("cpu") + integer(elements) + "tQ";
}
inline std::string tensor(const std::string& storage, std::int64_t offset,
                          const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& strides) {
  return std::string("ctorch._utils\n_rebuild_tensor_v2\n(") + storage + integer(offset) +
         tuple(sizes) + tuple(strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}
inline std::string dict(std::string_view key, const std::string& value) {
  return std::string("}(") + text(key) + value + "u";
}

}  // namespace pickle
}  // namespace gala::testing
