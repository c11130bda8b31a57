#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gala {

/// A picture: 8-bit interleaved RGB (`pixels`, height x width x 3), or float planes taken as they
/// are
/// (`planes`, 3 x height x width). Exactly one of the two is filled. Reading into the same Image
/// again reuses its buffers.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<float> planes;
  std::vector<std::byte> encoded;  ///< scratch of the reader: the bytes of the file

  /// Makes it an RGB picture of this size; the pixels are left as they come.
  void shape_pixels(std::int64_t new_height, std::int64_t new_width);
};

/// Pictures with more pixels are refused from their header alone, before anything is allocated (the
/// number is PIL's).
inline constexpr std::int64_t kLargestPicture = 178'956'970;

/// Decodes a JPEG or PNG file, told apart by content, to 8-bit RGB as PIL's `convert("RGB")` does:
/// grey is repeated, palettes are looked up, alpha is dropped, CMYK is taken as Adobe writes it. Of
/// 16 bits the upper 8 are kept (PIL clips 16-bit grey instead). Throws FormatError, naming `path`,
/// for anything else, for a file that ends early and for a picture that is too large.
void decode_image(std::span<const std::byte> bytes, const std::string& path, Image& into);

/// Reads a whole file into `into`, whose memory is reused. Throws FormatError.
void read_file(const std::string& path, std::vector<std::byte>& into);

}  // namespace gala
