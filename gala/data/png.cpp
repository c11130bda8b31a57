#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "gala/base/error.h"
#include "gala/data/image_codecs.h"

namespace gala {
namespace {

/// Everything the decoder touches; errors jump back to a frame without destructors, since
/// exceptions must not pass through libpng's C frames.
struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf back;
  char message[256] = "";

  const std::byte* bytes = nullptr;
  std::size_t size = 0;
  std::size_t at = 0;
  std::uint8_t* pixels = nullptr;

  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void give_up(png_structp png, png_const_charp message) {
  auto* decoder = static_cast<Decoder*>(png_get_error_ptr(png));
  std::snprintf(decoder->message, sizeof decoder->message, "%s", message);
  std::longjmp(decoder->back, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep into, std::size_t count) {
  auto* decoder = static_cast<Decoder*>(png_get_io_ptr(png));
  if (count > decoder->size - decoder->at) png_error(png, "the file ends early");
  std::memcpy(into, decoder->bytes + decoder->at, count);
  decoder->at += count;
}

bool read_header(Decoder& decoder) {
  if (setjmp(decoder.back)) return false;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, give_up, ignore_warning);
  if (!decoder.png) return false;
  decoder.info = png_create_info_struct(decoder.png);
  if (!decoder.info) return false;
  png_set_read_fn(decoder.png, &decoder, read_bytes);
  // A compressed text or colour profile may unpack to anything; nothing here needs one.
  png_set_chunk_malloc_max(decoder.png, 8 << 20);
  png_set_user_limits(decoder.png, 0x7fffffff, 0x7fffffff);
  png_read_info(decoder.png, decoder.info);
  return true;
}

/// Whatever the file holds becomes 8-bit RGB.
bool read_pixels(Decoder& decoder) {
  if (setjmp(decoder.back)) return false;
  png_set_expand(decoder.png);
  png_set_strip_16(decoder.png);
  png_set_strip_alpha(decoder.png);
  png_set_gray_to_rgb(decoder.png);
  const int passes = png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  const std::size_t stride = png_get_rowbytes(decoder.png, decoder.info);
  const png_uint_32 height = png_get_image_height(decoder.png, decoder.info);
  const png_uint_32 width = png_get_image_width(decoder.png, decoder.info);
  if (stride != std::size_t{width} * 3) png_error(decoder.png, "unexpected row size");
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < height; ++y) {
      png_read_row(decoder.png, decoder.pixels + y * stride, nullptr);
    }
  }
  return true;
}

[[noreturn]] void refuse(const Decoder& decoder, const std::string& path) {
  throw FormatError(path, fmt::format("cannot be decoded as PNG: {}", decoder.message));
}

}  // namespace

void decode_png(std::span<const std::byte> bytes, const std::string& path, Image& into) {
  Decoder decoder;
  decoder.bytes = bytes.data();
  decoder.size = bytes.size();
  if (!read_header(decoder)) refuse(decoder, path);

  const std::uint64_t height = png_get_image_height(decoder.png, decoder.info);
  const std::uint64_t width = png_get_image_width(decoder.png, decoder.info);
  check_picture_size(height, width, path);
  // Deflate packs at most 1032 to 1: a size beyond that is a lie.
  const std::uint64_t packed = png_get_rowbytes(decoder.png, decoder.info) * height;
  if (packed / 1100 > bytes.size()) {
    throw FormatError(
        path, fmt::format("the header says {} x {} pixels, far more than {} bytes hold", width,
                          height, bytes.size()));
  }
  into.shape_pixels(static_cast<std::int64_t>(height), static_cast<std::int64_t>(width));
  decoder.pixels = into.pixels.data();
  if (!read_pixels(decoder)) refuse(decoder, path);
}

}  // namespace gala
