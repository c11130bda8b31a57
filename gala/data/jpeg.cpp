#include <csetjmp>
#include <cstdio>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>
// jerror.h needs jpeglib.h before it.
#include <jerror.h>

#include "gala/base/error.h"
#include "gala/data/image_codecs.h"

namespace gala {
namespace {

// A progressive file may hold any number of scans over the whole picture; honest ones stay below
// some dozen.
constexpr int kMostScans = 500;

/// Everything the decoder touches. libjpeg reports errors by a call that must not return; a C++
/// exception must not pass through C frames, so the call jumps back to `decode`, whose frame holds
/// nothing that has a destructor.
struct Decoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";
  bool created = false;

  const unsigned char* bytes = nullptr;
  unsigned long size = 0;
  std::uint8_t* pixels = nullptr;    ///< height x width x 3
  std::uint8_t* cmyk_row = nullptr;  ///< width x 4, only for CMYK

  ~Decoder() {
    if (created) jpeg_destroy_decompress(&info);
  }
};

[[noreturn]] void give_up(j_common_ptr info) {
  auto* decoder = static_cast<Decoder*>(info->client_data);
  (*info->err->format_message)(info, decoder->message);
  std::longjmp(decoder->back, 1);
}

void take_message(j_common_ptr info, int level) {
  // Level -1 is a warning: damage the decoder can paper over. PIL lets it pass too, except when the
  // file ends early.
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) give_up(info);
}

void watch_progress(j_common_ptr info) {
  auto* decoder = static_cast<Decoder*>(info->client_data);
  if (decoder->info.input_scan_number > kMostScans) {
    std::snprintf(decoder->message, sizeof decoder->message, "more than %d scans", kMostScans);
    std::longjmp(decoder->back, 1);
  }
}

/// Reads the header and chooses the output's colour space; false after an error.
bool read_header(Decoder& decoder) {
  if (setjmp(decoder.back)) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.created = true;
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, decoder.bytes, decoder.size);
  jpeg_read_header(&decoder.info, TRUE);
  switch (decoder.info.jpeg_color_space) {
    case JCS_CMYK:
    case JCS_YCCK:
      decoder.info.out_color_space = JCS_CMYK;
      break;
    default:
      decoder.info.out_color_space = JCS_RGB;
  }
  return true;
}

/// One row of Adobe's CMYK, which is stored inverted, to RGB: (255 - c)(255 - k) / 255, rounded in
/// the two steps PIL takes.
void cmyk_to_rgb(const std::uint8_t* cmyk, std::int64_t width, std::uint8_t* rgb) {
  for (std::int64_t x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    const int white = cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[c]) * white + 128;
      rgb[c] = static_cast<std::uint8_t>(white - ((product + (product >> 8)) >> 8));
    }
  }
}

bool read_pixels(Decoder& decoder) {
  if (setjmp(decoder.back)) return false;
  jpeg_start_decompress(&decoder.info);
  while (decoder.info.output_scanline < decoder.info.output_height) {
    const std::int64_t width = decoder.info.output_width;
    std::uint8_t* rgb = decoder.pixels + decoder.info.output_scanline * width * 3;
    JSAMPROW row = decoder.cmyk_row ? decoder.cmyk_row : rgb;
    jpeg_read_scanlines(&decoder.info, &row, 1);
    if (decoder.cmyk_row) cmyk_to_rgb(decoder.cmyk_row, width, rgb);
  }
  return true;
}

[[noreturn]] void refuse(const Decoder& decoder, const std::string& path) {
  throw FormatError(path, fmt::format("cannot be decoded as JPEG: {}", decoder.message));
}

}  // namespace

void decode_jpeg(std::span<const std::byte> bytes, const std::string& path, Image& into) {
  Decoder decoder;
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.info.client_data = &decoder;
  decoder.errors.error_exit = give_up;
  decoder.errors.emit_message = take_message;
  decoder.progress.progress_monitor = watch_progress;
  decoder.bytes = reinterpret_cast<const unsigned char*>(bytes.data());
  decoder.size = bytes.size();
  if (!read_header(decoder)) refuse(decoder, path);

  const auto height = decoder.info.image_height, width = decoder.info.image_width;
  check_picture_size(height, width, path);
  // Huffman coding spends at least a bit on each 8 x 8 block of each component, and a component is
  // at most 4 x 4 times coarser than the picture: a size beyond that is a lie.
  if (!decoder.info.arith_code && std::uint64_t{height} * width / 8192 > bytes.size()) {
    throw FormatError(
        path, fmt::format("the header says {} x {} pixels, far more than {} bytes hold", width,
                          height, bytes.size()));
  }
  into.shape_pixels(height, width);
  std::vector<std::uint8_t> cmyk;
  if (decoder.info.out_color_space == JCS_CMYK) cmyk.resize(std::size_t{width} * 4);
  decoder.cmyk_row = cmyk.empty() ? nullptr : cmyk.data();
  decoder.pixels = into.pixels.data();
  if (!read_pixels(decoder)) refuse(decoder, path);
}

}  // namespace gala
