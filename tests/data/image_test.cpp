#include "gala/data/image.h"

#include <cstdio>
#include <cstring>
#include <random>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "gala/data/npy.h"
#include "support.h"

namespace gala {
namespace {

using test::fixture;
using test::message_of;
using test::read_text;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Image decode(const std::string& text) {
  Image image;
  decode_image(as_bytes(text), "a/file", image);
  return image;
}

/// The largest difference to what PIL made of the same file; -1 when the sizes differ.
int difference_to_pil(const std::string& name) {
  const Image image = decode(read_text(fixture(name)));
  const NpyArray expected = read_npy(fixture(name + ".npy"));
  if (expected.shape != std::vector<std::int64_t>{image.height, image.width, 3}) return -1;
  int largest = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(image.pixels[i] - std::to_integer<int>(expected.data[i])));
  }
  return largest;
}

TEST(Image, ReadsPngExactlyAsPilDoes) {
  for (const char* name :
       {"rgb8", "rgb8_interlaced", "rgb16", "rgba8", "grey8", "grey_alpha8", "grey1",
        "grey4_interlaced", "palette4", "palette2_transparent", "grey16"}) {
    EXPECT_EQ(difference_to_pil(std::string(name) + ".png"), 0) << name;
  }
}

TEST(Image, ReadsJpegAsPilDoesToOneLevel) {
  for (const char* name : {"rgb_420", "rgb_422", "rgb_444", "progressive", "grey", "cmyk"}) {
    const int difference = difference_to_pil(std::string(name) + ".jpg");
    EXPECT_GE(difference, 0) << name;
    EXPECT_LE(difference, 1) << name;
  }
}

/// One colour, written as YCCK, the form in which Adobe stores CMYK.
std::string ycck_jpeg(std::array<std::uint8_t, 4> inverted_cmyk) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = info.image_height = 16;
  info.input_components = 4;
  info.in_color_space = JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, JCS_YCCK);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> row;
  for (int x = 0; x < 16; ++x) row.insert(row.end(), inverted_cmyk.begin(), inverted_cmyk.end());
  JSAMPROW pointer = row.data();
  for (int y = 0; y < 16; ++y) jpeg_write_scanlines(&info, &pointer, 1);
  jpeg_finish_compress(&info);
  std::string text(reinterpret_cast<char*>(memory), size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return text;
}

TEST(Image, ReadsYcckAsInvertedCmyk) {
  const Image image = decode(ycck_jpeg({200, 100, 50, 128}));
  ASSERT_EQ(image.pixels.size(), 16u * 16 * 3);
  const std::array<double, 3> expected = {200 * 128 / 255.0, 100 * 128 / 255.0, 50 * 128 / 255.0};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    EXPECT_NEAR(image.pixels[i], expected[i % 3], 2);
  }
}

TEST(Image, ReusesItsMemory) {
  Image image;
  const std::string text = read_text(fixture("rgb8.png"));
  decode_image(as_bytes(text), "x", image);
  const auto* before = image.pixels.data();
  decode_image(as_bytes(text), "x", image);
  EXPECT_EQ(image.pixels.data(), before);
}

TEST(Image, RefusesAnEmptyFileAndAForeignOneByName) {
  EXPECT_EQ(message_of<FormatError>([] { decode(""); }), "a/file: the file is empty");
  EXPECT_EQ(message_of<FormatError>([] { decode("GIF89a"); }),
            "a/file: neither a JPEG nor a PNG file");
  EXPECT_CONTAINS(message_of<FormatError>([] { decode("\xff\xd8\xff"); }), "a/file: ");
}

TEST(Image, RefusesFilesThatEndEarly) {
  for (const char* name : {"rgb_420.jpg", "progressive.jpg", "cmyk.jpg", "rgb8.png",
                           "rgb8_interlaced.png", "palette4.png"}) {
    const std::string whole = read_text(fixture(name));
    for (std::size_t length = 1; length < whole.size() - 40; length += 7) {
      EXPECT_NE(message_of<FormatError>([&] { decode(whole.substr(0, length)); }), "no error")
          << name << " cut to " << length;
    }
  }
}

TEST(Image, RefusesAHugeHeaderWithoutAllocating) {
  std::string png = read_text(fixture("rgb8.png"));
  // 50,000 x 50,000 in the header; the checksum of the chunk is fitted by hand below.
  const auto set_size = [&](std::uint32_t width, std::uint32_t height) {
    for (int i = 0; i < 4; ++i) {
      png[16 + i] = static_cast<char>(width >> (24 - 8 * i));
      png[20 + i] = static_cast<char>(height >> (24 - 8 * i));
    }
    std::uint32_t crc = 0xffffffff;
    for (std::size_t i = 12; i < 29; ++i) {
      crc ^= static_cast<unsigned char>(png[i]);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    crc = ~crc;
    for (int i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  };
  set_size(50000, 50000);
  EXPECT_CONTAINS(message_of<FormatError>([&] { decode(png); }), "50000 x 50000 pixels; at most");
  set_size(12000, 12000);
  EXPECT_CONTAINS(message_of<FormatError>([&] { decode(png); }), "far more than");

  std::string jpeg = read_text(fixture("rgb_444.jpg"));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xc3\x50\xc3\x50");
  EXPECT_CONTAINS(message_of<FormatError>([&] { decode(jpeg); }), "50000 x 50000 pixels; at most");
  jpeg.replace(frame + 5, 4, "\x2e\xe0\x2e\xe0");
  EXPECT_CONTAINS(message_of<FormatError>([&] { decode(jpeg); }), "far more than");
}

TEST(Image, SurvivesDamagedBytes) {
  std::mt19937 random(7);
  int refused = 0;
  for (const char* name : {"rgb_420.jpg", "progressive.jpg", "cmyk.jpg", "rgb8.png",
                           "rgb8_interlaced.png", "palette4.png", "rgb16.png"}) {
    const std::string whole = read_text(fixture(name));
    Image image;
    for (int trial = 0; trial < 300; ++trial) {
      std::string text = whole;
      for (int i = 0; i < 3; ++i)
        text[3 + random() % (text.size() - 3)] = static_cast<char>(random());
      try {
        decode_image(as_bytes(text), "x", image);
        EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(image.height * image.width * 3));
      } catch (const FormatError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Image, NamesTheFileThatCannotBeRead) {
  std::vector<std::byte> bytes;
  EXPECT_CONTAINS(message_of<FormatError>([&] { read_file("/nowhere/x.png", bytes); }),
                  "/nowhere/x.png: cannot be opened");
  EXPECT_CONTAINS(message_of<FormatError>([&] { read_file("/tmp", bytes); }), "/tmp: ");
}

}  // namespace
}  // namespace gala
