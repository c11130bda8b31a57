#include <cstddef>
#include <cstdio>
// The library's header needs the two above.
#include <jpeglib.h>

#include <array>
#include <csetjmp>

#include "gala/base/error.h"
#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

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

/// A 32x32 image in a buffer that is always large enough: headers take about 600 bytes and even
/// quality 100 stays below two bytes a value.
struct Encoded {
  std::array<std::uint8_t, 8192> bytes;
  unsigned long size = 0;
};

/// False when the library reports an error.
bool encode(const std::uint8_t* input, int quality, Encoded& encoded) {
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
  library.image_width = kSide;
  library.image_height = kSide;
  library.input_components = 3;
  library.in_color_space = JCS_RGB;
  jpeg_set_defaults(&library);
  jpeg_set_quality(&library, quality, TRUE);
  jpeg_start_compress(&library, TRUE);
  for (int y = 0; y < kSide; ++y) {
    // The library takes rows as mutable but only reads them.
    JSAMPROW row = const_cast<JSAMPROW>(&input[3 * kSide * y]);
    jpeg_write_scanlines(&library, &row, 1);
  }
  jpeg_finish_compress(&library);
  jpeg_destroy_compress(&library);
  return buffer == encoded.bytes.data();
}

bool decode(const Encoded& encoded, std::uint8_t* output) {
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
    JSAMPROW row = &output[3 * kSide * library.output_scanline];
    jpeg_read_scanlines(&library, &row, 1);
  }
  jpeg_finish_decompress(&library);
  jpeg_destroy_decompress(&library);
  return true;
}

/// Baseline JPEG with colour at half resolution, there and back.
class JpegCompression final : public CorruptionEffect {
 public:
  explicit JpegCompression(int quality) : quality_(quality) {}
  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    Encoded encoded;
    if (!encode(input, quality_, encoded) || !decode(encoded, output)) {
      fail<Error>("the JPEG library could not handle a 32x32 image");
    }
  }

 private:
  int quality_;
};

}  // namespace

EffectPointer make_jpeg_compression(int severity) {
  constexpr int kQuality[] = {80, 65, 58, 50, 40};
  return std::make_unique<JpegCompression>(kQuality[severity - 1]);
}

}  // namespace gala
