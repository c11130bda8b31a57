#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gala {

/// SHA-256, fed in pieces; names data and weights in records.
class Sha256 {
 public:
  void update(const void* data, std::size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// The digest as 64 hexadecimal digits. The object must not be used afterwards.
  std::string hex();

 private:
  void compress(const unsigned char* block);
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  std::uint64_t length_ = 0;
};

/// The MD5 digest as 32 hexadecimal digits. Only for protocols that are defined by it (DomainBed's
/// splits); it names nothing.
std::string md5_hex(std::string_view text);

}  // namespace gala
