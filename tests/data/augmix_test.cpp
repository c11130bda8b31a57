#include "gala/data/augmix.h"

#include <cmath>

#include "gala/data/npy.h"
#include "support.h"

namespace gala {
namespace {

using Pixels = std::vector<std::uint8_t>;

constexpr std::int64_t kHeight = 24, kWidth = 32;

Pixels load(const std::string& name) {
  const NpyArray array = read_npy(test::fixture("augmix_" + name + ".npy"));
  const auto* begin = reinterpret_cast<const std::uint8_t*>(array.data.data());
  return {begin, begin + array.data.size()};
}

Pixels warped(const AffineMap& map) {
  const Pixels source = load("source");
  Pixels result(source.size());
  warp({source.data(), kHeight, kWidth, kWidth * 3}, map, result);
  return result;
}

TEST(AugMix, ChangesValuesAsPilDoes) {
  const auto changed = [](auto&& change) {
    Pixels pixels = load("source");
    change(pixels);
    return pixels;
  };
  EXPECT_EQ(changed(stretch_contrast), load("autocontrast"));
  EXPECT_EQ(changed(equalize_histogram), load("equalize"));
  EXPECT_EQ(changed([](Pixels& p) { posterize(p, 3); }), load("posterize_3"));
  EXPECT_EQ(changed([](Pixels& p) { posterize(p, 4); }), load("posterize_4"));
  EXPECT_EQ(changed([](Pixels& p) { solarize(p, 256); }), load("solarize_256"));
  EXPECT_EQ(changed([](Pixels& p) { solarize(p, 180); }), load("solarize_180"));
  EXPECT_EQ(changed([](Pixels& p) { solarize(p, 100); }), load("solarize_100"));
}

TEST(AugMix, WarpsAsPilDoes) {
  EXPECT_EQ(warped({1, 0.08, 0, 0, 1, 0}), load("shear_x_0.08"));
  EXPECT_EQ(warped({1, 0, 0, -0.05, 1, 0}), load("shear_y_-0.05"));
  EXPECT_EQ(warped({1, 0, 3, 0, 1, 0}), load("translate_x_3"));
  EXPECT_EQ(warped({1, 0, 0, 0, 1, -2}), load("translate_y_-2"));
  EXPECT_EQ(warped(rotation(7, kHeight, kWidth)), load("rotate_7"));
  EXPECT_EQ(warped(rotation(-9, kHeight, kWidth)), load("rotate_-9"));
  EXPECT_EQ(warped({1, 0, 100, 0, 1, 0}), Pixels(load("source").size(), 0));
}

TEST(AugMix, LeavesAChannelOfOneLevelAlone) {
  Pixels flat(12 * 12 * 3, 77);
  const Pixels before = flat;
  stretch_contrast(flat);
  EXPECT_EQ(flat, before);
  equalize_histogram(flat);
  EXPECT_EQ(flat, before);
}

/// 32 x 32 of one colour: crop, warps and mixing can only darken it, by black from outside.
class AugMixDraw : public testing::Test {
 protected:
  AugMixDraw() {
    preprocessing_.size = 32;
    image_.shape_pixels(32, 32);
    Random random(1, "pixels");
    for (auto& value : image_.pixels) value = static_cast<std::uint8_t>(random.below(256));
  }

  std::vector<float> draw(const Transform& transform, std::uint64_t step,
                          std::uint64_t slot) const {
    TransformScratch scratch;
    std::vector<float> out(3 * 32 * 32);
    transform.apply(image_, step, slot, scratch, out.data());
    return out;
  }

  Preprocessing preprocessing_;
  Image image_;
};

TEST_F(AugMixDraw, DependsOnSeedStepAndSlotAlone) {
  const AugMixAugment augment(preprocessing_, 1);
  const auto first = draw(augment, 2, 3);
  TransformScratch used;
  std::vector<float> again(first.size());
  for (std::uint64_t slot = 0; slot < 4; ++slot) {
    augment.apply(image_, 2, slot, used, again.data());
  }
  EXPECT_EQ(again, first);
  EXPECT_NE(draw(AugMixAugment(preprocessing_, 2), 2, 3), first);
  EXPECT_NE(draw(augment, 3, 3), first);
  EXPECT_NE(draw(augment, 2, 4), first);
}

TEST_F(AugMixDraw, MixesWithSharesThatSumToOne) {
  // Black stays black under every change but solarize and inversion of contrast, which leave 0
  // alone below their threshold: so a constant offset shows the sum of all shares.
  std::fill(image_.pixels.begin(), image_.pixels.end(), 0);
  preprocessing_.mean = {0.5, 0.5, 0.5};
  preprocessing_.std = {0.5, 0.5, 0.5};
  const AugMixAugment augment(preprocessing_, 8);
  for (std::uint64_t slot = 0; slot < 200; ++slot) {
    for (const float value : draw(augment, 0, slot)) ASSERT_NEAR(value, -1, 1e-5);
  }
}

TEST_F(AugMixDraw, StaysInTheRangeOfThePicture) {
  const AugMixAugment augment(preprocessing_, 8);
  const CropFlipAugment plain(preprocessing_, 8);
  double moved = 0;
  for (std::uint64_t slot = 0; slot < 200; ++slot) {
    const auto mixed = draw(augment, 0, slot), cropped = draw(plain, 0, slot);
    for (std::size_t i = 0; i < mixed.size(); ++i) {
      ASSERT_GE(mixed[i], -1e-6);
      ASSERT_LE(mixed[i], 1 + 1e-6);
      moved += std::abs(mixed[i] - cropped[i]);
    }
  }
  EXPECT_GT(moved / (200 * 3072), 0.02);
}

TEST_F(AugMixDraw, ViewsOfAPictureShareTheirCrop) {
  constexpr std::uint64_t kBatch = 5;
  const AugMixAugment views(preprocessing_, 4, kBatch);
  const CropFlipAugment plain(preprocessing_, 4);
  for (std::uint64_t slot = 0; slot < kBatch; ++slot) {
    const auto clean = draw(views, 7, slot);
    EXPECT_EQ(clean, draw(plain, 7, slot));
    const auto one = draw(views, 7, slot + kBatch), two = draw(views, 7, slot + 2 * kBatch);
    EXPECT_NE(one, clean);
    EXPECT_NE(two, one);
    // Mixtures hold a part of the crop: they resemble it more than the crop of another slot does.
    double near = 0, far = 0;
    const auto other = draw(plain, 7, (slot + 1) % kBatch);
    for (std::size_t i = 0; i < clean.size(); ++i) {
      near += std::abs(one[i] - clean[i]);
      far += std::abs(one[i] - other[i]);
    }
    EXPECT_LT(near, far);
  }
}

}  // namespace
}  // namespace gala
