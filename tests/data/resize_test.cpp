#include "gala/data/resize.h"

#include "gala/data/npy.h"
#include "gala/data/transform.h"
#include "support.h"

namespace gala {
namespace {

using test::fixture;

PixelView view_of_array(const NpyArray& array) {
  return {reinterpret_cast<const std::uint8_t*>(array.data.data()), array.shape[0], array.shape[1],
          array.shape[1] * 3};
}

int largest_difference(PixelView a, PixelView b) {
  int largest = 0;
  for (std::int64_t y = 0; y < a.height; ++y) {
    for (std::int64_t x = 0; x < a.width * 3; ++x) {
      largest =
          std::max(largest, std::abs(a.pixels[y * a.stride + x] - b.pixels[y * b.stride + x]));
    }
  }
  return largest;
}

TEST(Resize, IsPilsToTheLastLevel) {
  const NpyArray source = read_npy(fixture("resize_source.npy"));
  Resizer resizer;
  for (const auto& [filter, width, height] :
       std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>{{"bilinear", 32, 32},
                                                                        {"bilinear", 70, 20},
                                                                        {"bilinear", 61, 30},
                                                                        {"bilinear", 7, 47},
                                                                        {"bicubic", 32, 32},
                                                                        {"bicubic", 80, 50},
                                                                        {"nearest", 33, 80},
                                                                        {"box", 16, 20}}) {
    const std::string name = fmt::format("resize_{}_{}x{}.npy", filter, width, height);
    const NpyArray expected = read_npy(fixture(name));
    const PixelView resized =
        resizer.resize(view_of_array(source), height, width, parse_filter(filter));
    ASSERT_EQ(resized.height, height) << name;
    ASSERT_EQ(resized.width, width) << name;
    // Newer versions of PIL shrink the columns first in this one.
    const int allowed = width == 70 ? 1 : 0;
    EXPECT_LE(largest_difference(resized, view_of_array(expected)), allowed) << name;
  }
}

TEST(Resize, SeesOnlyTheWindowItIsGiven) {
  const NpyArray array = read_npy(fixture("resize_source.npy"));
  const PixelView whole = view_of_array(array);
  const PixelView window = {whole.pixels + 5 * whole.stride + 3 * 4, 20, 24, whole.stride};
  std::vector<std::uint8_t> copy;
  for (int y = 0; y < 20; ++y) {
    copy.insert(copy.end(), window.pixels + y * window.stride,
                window.pixels + y * window.stride + 24 * 3);
  }
  Resizer first, second;
  const PixelView a = first.resize(window, 9, 31, Filter::kBilinear);
  const PixelView b = second.resize({copy.data(), 20, 24, 72}, 9, 31, Filter::kBilinear);
  EXPECT_EQ(largest_difference(a, b), 0);
}

TEST(Resize, LeavesAPictureOfTheRightSizeAlone) {
  const NpyArray source = read_npy(fixture("resize_source.npy"));
  Resizer resizer;
  const PixelView view = view_of_array(source);
  EXPECT_EQ(resizer.resize(view, view.height, view.width, Filter::kBilinear).pixels, view.pixels);
}

TEST(Resize, NamesTheFiltersItKnows) {
  EXPECT_EQ(test::message_of<ConfigError>([] { parse_filter("lanczos"); }),
            "interpolation cannot be \"lanczos\" (expected nearest|box|bilinear|bicubic)");
}

TEST(Transform, NormalisesChannelByChannelInTheOrderOfTheWeights) {
  Preprocessing preprocessing;
  preprocessing.mean = {0.1, 0.2, 0.3};
  preprocessing.std = {0.5, 0.25, 2};
  preprocessing.size = 1;
  Image image;
  image.shape_pixels(1, 1);
  image.pixels = {255, 51, 0};
  TransformScratch scratch;
  std::array<float, 3> out{};
  EvaluationTransform(preprocessing).apply(image, 0, 0, scratch, out.data());
  EXPECT_FLOAT_EQ(out[0], 0.9f / 0.5f);
  EXPECT_NEAR(out[1], 0, 1e-7);
  EXPECT_FLOAT_EQ(out[2], -0.15f);
  preprocessing.channels = "bgr";
  EvaluationTransform(preprocessing).apply(image, 0, 0, scratch, out.data());
  EXPECT_FLOAT_EQ(out[0], -0.1f / 0.5f);
  EXPECT_FLOAT_EQ(out[2], 0.7f / 2);
}

}  // namespace
}  // namespace gala
