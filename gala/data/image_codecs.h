#pragma once
#include "gala/data/image.h"

namespace gala {

// The two decoders behind decode_image; the bytes begin with the format's signature.
void decode_jpeg(std::span<const std::byte> bytes, const std::string& path, Image& into);
void decode_png(std::span<const std::byte> bytes, const std::string& path, Image& into);

/// Throws FormatError for a size that is zero or beyond kLargestPicture.
void check_picture_size(std::uint64_t height, std::uint64_t width, const std::string& path);

}  // namespace gala
