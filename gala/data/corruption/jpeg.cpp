#include <cstddef>
#include <cstdio>
// The library's header needs the two above.
#include <jpeglib.h>

#include <csetjmp>
#include <vector>

#include "gala/base/error.h"
#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/jpeg_round_trip.h"

namespace gala {
namespace {

/// The library's error handler may not return: it jumps back, and the caller throws.
struct JumpingErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
};

void jump_back(j_common_ptr library) {
  std::longjmp(reinterpret_cast<JumpingErrors*>(library->err)->back, 1);
}

void ignore_message(j_common_ptr) {}

jpeg_error_mgr* prepare(JumpingErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = jump_back;
  errors.manager.output_message = ignore_message;
  return &errors.manager;
}

/// An image in a buffer that is always large enough: headers take about 600 bytes and even quality 100
/// stays below two bytes a value.
struct Encoded {
  explicit Encoded(int side) : bytes(static_cast<std::size_t>(6 * side * side + 2048)) {}
  std::vector<std::uint8_t> bytes;
  unsigned long size = 0;
};

/// False when the library reports an error.
bool encode(const std::uint8_t* input, int side, int quality, Encoded& encoded) {
  jpeg_compress_struct library;
  JumpingErrors errors;
  library.err = prepare(errors);
  if (setjmp(errors.back)) {
    jpeg_destroy_compress(&library);
    return false;
  }
  jpeg_create_compress(&library);
  unsigned char* buffer = encoded.bytes.data();
  encoded.size = encoded.bytes.size();
  jpeg_mem_dest(&library, &buffer, &encoded.size);
  library.image_width = static_cast<JDIMENSION>(side);
  library.image_height = static_cast<JDIMENSION>(side);
  library.input_components = 3;
  library.in_color_space = JCS_RGB;
  jpeg_set_defaults(&library);
  jpeg_set_quality(&library, quality, TRUE);
  jpeg_start_compress(&library, TRUE);
  for (int y = 0; y < side; ++y) {
    // The library takes rows as mutable but only reads them.
    JSAMPROW row = const_cast<JSAMPROW>(&input[3 * side * y]);
    jpeg_write_scanlines(&library, &row, 1);
  }
  jpeg_finish_compress(&library);
  jpeg_destroy_compress(&library);
  return buffer == encoded.bytes.data();
}

bool decode(const Encoded& encoded, int side, std::uint8_t* output) {
  jpeg_decompress_struct library;
  JumpingErrors errors;
  library.err = prepare(errors);
  if (setjmp(errors.back)) {
    jpeg_destroy_decompress(&library);
    return false;
  }
  jpeg_create_decompress(&library);
  jpeg_mem_src(&library, encoded.bytes.data(), encoded.size);
  jpeg_read_header(&library, TRUE);
  library.out_color_space = JCS_RGB;
  jpeg_start_decompress(&library);
  while (library.output_scanline < library.output_height) {
    JSAMPROW row = &output[3 * static_cast<JDIMENSION>(side) * library.output_scanline];
    jpeg_read_scanlines(&library, &row, 1);
  }
  jpeg_finish_decompress(&library);
  jpeg_destroy_decompress(&library);
  return true;
}

class JpegCompression final : public CorruptionEffect {
 public:
  JpegCompression(int side, int quality) : side_(side), quality_(quality) {}
  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    jpeg_round_trip(input, side_, quality_, output);
  }

 private:
  int side_, quality_;
};

}  // namespace

void jpeg_round_trip(const std::uint8_t* input, int side, int quality, std::uint8_t* output) {
  Encoded encoded(side);
  if (!encode(input, side, quality, encoded) || !decode(encoded, side, output)) {
    fail<Error>("the JPEG library could not handle an image of {0}x{0}", side);
  }
}

EffectPointer make_jpeg_compression(CorruptionSet set, int severity) {
  constexpr int kQuality[][kSeverities] = {{80, 65, 58, 50, 40}, {25, 18, 15, 10, 7}};
  return std::make_unique<JpegCompression>(side_of(set), constant_of(kQuality, set, severity));
}

}  // namespace gala
