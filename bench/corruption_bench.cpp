// Images per second of the fifteen corruptions of the benchmark at severity 5, on one core, by the
// processor's time.
//   gala_bench_corruption IMAGES.png [COUNT]
// IMAGES.png has one 32x32 RGB image a row (assets/cifar10_test_2000.png), or one of 224x224
// (tools/crop_imagenet.py makes such files); the size says whose constants are used. Prints a JSON line for each
// corruption and one for all of them.
#include <fmt/format.h>
#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "gala/base/error.h"
#include "gala/data/corruption/corruption.h"

namespace {

struct Images {
  gala::CorruptionSet set;
  std::vector<std::uint8_t> bytes;
};

Images read_images(const char* path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  std::vector<std::uint8_t> bytes;
  if (png_image_begin_read_from_file(&image, path)) {
    image.format = PNG_FORMAT_RGB;
    bytes.resize(PNG_IMAGE_SIZE(image));
    png_image_finish_read(&image, nullptr, bytes.data(), 0, nullptr);
  }
  if (PNG_IMAGE_FAILED(image)) throw gala::FormatError(path, image.message);
  for (const auto set : {gala::CorruptionSet::kCifar, gala::CorruptionSet::kImageNet}) {
    if (image.width * 3 == gala::corruption_bytes(set)) return {set, std::move(bytes)};
  }
  throw gala::FormatError(path, "expected a width of 1024 or 50176 pixels, one image a row");
}

void print(std::string_view name, std::size_t images, double seconds) {
  fmt::print(
      "{{\"corruption\": \"{}\", \"images\": {}, \"milliseconds_per_image\": {:.4f}, "
      "\"images_per_second\": {:.1f}}}\n",
      name, images, 1e3 * seconds / static_cast<double>(images),
      static_cast<double>(images) / seconds);
}

void measure(const char* path, std::size_t count) {
  const auto [set, images] = read_images(path);
  const auto bytes = static_cast<std::size_t>(gala::corruption_bytes(set));
  count = std::min(count, images.size() / bytes);
  std::vector<std::uint8_t> output(bytes);
  double total = 0;
  for (int kind = 0; kind < gala::kBenchmarkCorruptions; ++kind) {
    const auto corruption = static_cast<gala::Corruption>(kind);
    const std::clock_t begin = std::clock();
    const gala::Corruptor corruptor(corruption, 5, 0, nullptr, set);
    for (std::size_t i = 0; i < count; ++i) {
      corruptor.apply(static_cast<std::int64_t>(i), std::span(images).subspan(i * bytes, bytes),
                      output);
    }
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    print(gala::corruption_name(corruption), count, seconds);
    total += seconds;
  }
  print("all", count * gala::kBenchmarkCorruptions, total);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: gala_bench_corruption IMAGES.png [COUNT]\n");
    return 2;
  }
  measure(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "gala_bench_corruption: {}\n", error.what());
  return 1;
}
