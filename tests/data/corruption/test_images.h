#pragma once
#include <gtest/gtest.h>
#include <png.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gala::test {

inline constexpr std::size_t kImageBytes = 32 * 32 * 3;
inline constexpr std::size_t kMosaicBytes = 224 * 224 * 3;

/// An RGB picture, rows of interleaved bytes.
struct Picture {
  std::size_t height = 0, width = 0;
  std::vector<std::uint8_t> bytes;
};

inline Picture read_png(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  Picture picture;
  if (png_image_begin_read_from_file(&image, path.c_str())) {
    image.format = PNG_FORMAT_RGB;
    picture = {image.height, image.width, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
    png_image_finish_read(&image, nullptr, picture.bytes.data(), 0, nullptr);
  }
  EXPECT_FALSE(PNG_IMAGE_FAILED(image)) << path << ": " << image.message;
  return picture;
}

/// The 32x32 tile at (row, column), as one image.
inline std::vector<std::uint8_t> tile(const Picture& picture, std::size_t row, std::size_t column) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t y = 0; y < 32; ++y) {
    const auto* begin = &picture.bytes[((row * 32 + y) * picture.width + column * 32) * 3];
    bytes.insert(bytes.end(), begin, begin + 96);
  }
  return bytes;
}

/// The first `count` CIFAR-10 test images, one after the other.
inline std::vector<std::uint8_t> cifar_images(std::size_t count) {
  auto picture = read_png(GALA_TEST_SOURCE_DIR "/assets/cifar10_test_2000.png");
  EXPECT_EQ(picture.width, 1024u);
  EXPECT_EQ(picture.height, 2000u);
  picture.bytes.resize(count * kImageBytes);
  return picture.bytes;
}

/// Pictures of 224x224, each 7x7 CIFAR-10 test images beside each other, one after the other.
inline std::vector<std::uint8_t> mosaics(std::size_t count) {
  const auto images = cifar_images(49 * count);
  std::vector<std::uint8_t> bytes(kMosaicBytes * count);
  for (std::size_t i = 0; i < 49 * count; ++i) {
    const std::size_t row = i % 49 / 7, column = i % 7;
    for (std::size_t y = 0; y < 32; ++y) {
      const auto* line = &images[i * kImageBytes + 96 * y];
      std::copy(line, line + 96,
                &bytes[i / 49 * kMosaicBytes + ((row * 32 + y) * 7 + column) * 96]);
    }
  }
  return bytes;
}

/// The 32x32 tile of a mosaic whose first row and column is `begin`.
inline std::vector<std::uint8_t> tile_of_mosaic(std::span<const std::uint8_t> mosaic,
                                                std::size_t begin) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t y = begin; y < begin + 32; ++y) {
    const auto* line = &mosaic[(y * 224 + begin) * 3];
    bytes.insert(bytes.end(), line, line + 96);
  }
  return bytes;
}

inline std::span<const std::uint8_t> image_at(const std::vector<std::uint8_t>& images,
                                              std::size_t index) {
  return std::span(images).subspan(index * kImageBytes, kImageBytes);
}

}  // namespace gala::test
