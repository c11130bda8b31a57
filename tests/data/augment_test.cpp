#include "gala/data/augment.h"

#include <cmath>

#include "support.h"

namespace gala {
namespace {

TEST(Augment, DrawsWindowsOfTheAskedAreaAndAspect) {
  double mean_area = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Random random(5, "window", {i});
    const CropWindow window = random_window(300, 400, 0.7, random);
    EXPECT_GE(window.top, 0);
    EXPECT_GE(window.left, 0);
    EXPECT_LE(window.top + window.height, 300);
    EXPECT_LE(window.left + window.width, 400);
    const double area = static_cast<double>(window.height * window.width) / (300 * 400);
    const double aspect = static_cast<double>(window.width) / static_cast<double>(window.height);
    EXPECT_GT(area, 0.69);
    EXPECT_LE(area, 1);
    EXPECT_GT(aspect, 0.74);
    EXPECT_LT(aspect, 1.35);
    mean_area += area / 2000;
  }
  EXPECT_GT(mean_area, 0.72);
  EXPECT_LT(mean_area, 0.9);
}

TEST(Augment, FallsBackToTheCentreOfALongPicture) {
  Random random(1, "window");
  EXPECT_EQ(random_window(10, 1000, 0.7, random), (CropWindow{0, 493, 10, 13}));
  EXPECT_EQ(random_window(1000, 9, 0.7, random), (CropWindow{494, 0, 12, 9}));
}

/// 32 x 32, red = column, green = row, blue = 255.
Image ramp() {
  Image image;
  image.shape_pixels(32, 32);
  for (std::size_t i = 0; i < 1024; ++i) {
    image.pixels[3 * i] = static_cast<std::uint8_t>(i % 32);
    image.pixels[3 * i + 1] = static_cast<std::uint8_t>(i / 32);
    image.pixels[3 * i + 2] = 255;
  }
  return image;
}

TEST(Augment, CropsAndFlipsEveryWayEquallyOften) {
  Preprocessing preprocessing;
  preprocessing.size = 32;
  const CropFlipAugment augment(preprocessing, 9);
  const Image image = ramp();
  TransformScratch scratch;
  std::vector<float> out(3 * 1024);
  std::array<std::array<int, 9>, 9> seen{};
  int flips = 0;
  constexpr int kDraws = 8100;
  for (std::uint64_t slot = 0; slot < kDraws; ++slot) {
    augment.apply(image, 3, slot, scratch, out.data());
    const auto level = [&](int c, int y, int x) {
      return std::lround(out[static_cast<std::size_t>(c * 1024 + y * 32 + x)] * 255);
    };
    // The middle always shows the picture: its level tells shift and flip.
    ASSERT_EQ(level(2, 16, 16), 255);
    const bool flipped = level(0, 16, 17) < level(0, 16, 16);
    const long down = level(1, 16, 16) - 16;
    const long right = flipped ? level(0, 16, 16) - 15 : level(0, 16, 16) - 16;
    ASSERT_LE(std::abs(down), 4);
    ASSERT_LE(std::abs(right), 4);
    ++seen[static_cast<std::size_t>(down + 4)][static_cast<std::size_t>(right + 4)];
    flips += flipped;
    // Every pixel is the shifted picture's or black padding.
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) {
        const long from_y = y + down, from_x = (flipped ? 31 - x : x) + right;
        const bool inside = from_y >= 0 && from_y < 32 && from_x >= 0 && from_x < 32;
        ASSERT_EQ(level(2, y, x), inside ? 255 : 0);
        ASSERT_EQ(level(0, y, x), inside ? from_x : 0);
        ASSERT_EQ(level(1, y, x), inside ? from_y : 0);
      }
    }
  }
  // 100 expected in each of 81 places, 10 the standard deviation.
  for (const auto& row : seen) {
    for (int count : row) {
      EXPECT_GT(count, 50);
      EXPECT_LT(count, 150);
    }
  }
  EXPECT_NEAR(flips, kDraws / 2, 200);
}

TEST(Augment, DependsOnSeedStepAndSlotAlone) {
  Preprocessing preprocessing;
  preprocessing.size = 16;
  const Image image = ramp();
  const auto draw = [&](std::uint64_t seed, std::uint64_t step, std::uint64_t slot) {
    TransformScratch scratch;
    std::vector<float> out(3 * 256);
    DomainBedAugment(preprocessing, seed).apply(image, step, slot, scratch, out.data());
    return out;
  };
  const auto first = draw(1, 2, 3);
  EXPECT_EQ(draw(1, 2, 3), first);
  EXPECT_NE(draw(2, 2, 3), first);
  EXPECT_NE(draw(1, 3, 3), first);
  EXPECT_NE(draw(1, 2, 4), first);
}

TEST(Augment, GreysOneInTen) {
  Preprocessing preprocessing;
  preprocessing.size = 8;
  const DomainBedAugment augment(preprocessing, 4);
  const Image image = ramp();
  TransformScratch scratch;
  std::vector<float> out(3 * 64);
  int grey = 0;
  for (std::uint64_t slot = 0; slot < 4000; ++slot) {
    augment.apply(image, 0, slot, scratch, out.data());
    grey += std::equal(out.begin(), out.begin() + 64, out.begin() + 64) &&
            std::equal(out.begin(), out.begin() + 64, out.begin() + 128);
  }
  EXPECT_NEAR(grey, 400, 100);
}

}  // namespace
}  // namespace gala
