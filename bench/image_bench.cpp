// Pictures per second of decoding, resizing to 224 x 224 and normalising, on one core, by the
// processor's time.
//   gala_bench_image FOLDER [COUNT [PIXELS.npy]]
// FOLDER holds JPEG or PNG files, or class folders of them. Prints a JSON line. PIXELS.npy receives the
// resized pictures, for pil_images.py to compare with its own.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "gala/base/error.h"
#include "gala/data/dataset.h"
#include "gala/data/npy.h"
#include "gala/data/transform.h"

namespace {

constexpr std::int64_t kSide = 224;

void write_pixels(const gala::Dataset& data, std::int64_t count, const char* path) {
  gala::Image image;
  gala::Resizer resizer;
  gala::write_npy(
      path, "|u1", std::vector<std::int64_t>{count, kSide, kSide, 3}, [&](std::ostream& out) {
        for (std::int64_t i = 0; i < count; ++i) {
          data.read(i, image);
          const auto view =
              resizer.resize(gala::view_of(image), kSide, kSide, gala::Filter::kBilinear);
          for (std::int64_t y = 0; y < kSide; ++y) {
            out.write(reinterpret_cast<const char*>(view.pixels + y * view.stride), kSide * 3);
          }
        }
      });
}

void measure(const char* folder, std::int64_t count, const char* pixels) {
  const auto source = gala::open_data({"folder", {{"path", folder}}});
  const gala::Dataset& data = *source.domains[0].data;
  count = std::min(count, data.size());
  const gala::EvaluationTransform transform(
      {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}, .size = kSide});
  gala::Image image;
  gala::TransformScratch scratch;
  std::vector<float> out(3 * kSide * kSide);
  // The first pass fills the file cache.
  double seconds = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const std::clock_t begin = std::clock();
    for (std::int64_t i = 0; i < count; ++i) {
      data.read(i, image);
      transform.apply(image, 0, 0, scratch, out.data());
    }
    seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  fmt::print(
      "{{\"images\": {}, \"milliseconds_per_image\": {:.4f}, \"images_per_second\": {:.1f}}}\n",
      count, 1e3 * seconds / static_cast<double>(count), static_cast<double>(count) / seconds);
  if (pixels) write_pixels(data, count, pixels);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: gala_bench_image FOLDER [COUNT [PIXELS.npy]]\n");
    return 2;
  }
  measure(argv[1], argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 1000,
          argc > 3 ? argv[3] : nullptr);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "gala_bench_image: {}\n", error.what());
  return 1;
}
