// `augment` for given numbers against plain_augment.h.
#include <gtest/gtest.h>

#include "tests/view/plain_augment.h"

namespace gala {
namespace {

/// Pixels of 0 to 1 and a little beyond, some of them grey, black and white.
at::Tensor pixels(std::int64_t height, std::int64_t width) {
  at::manual_seed(3);
  at::Tensor images = at::rand({3, 3, height, width}) * 1.1 - 0.05;
  images.select(2, 0).fill_(0.3);
  images.select(3, 0).fill_(0);
  images.select(3, 1).fill_(1);
  return images;
}

void expect_agreement(const at::Tensor& images, const AugmentDraw& draw,
                      AugmentOptions options = {}, const Preprocessing& preprocessing = {}) {
  options.noise = 0;
  const at::Tensor expected = test::plainly_augmented(images, draw, options, preprocessing);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor result = augmented(images.contiguous(format), draw, options, preprocessing);
    EXPECT_TRUE(result.is_contiguous(format));
    const double error = (result.to(at::kDouble) - expected).abs().max().item<double>();
    EXPECT_LT(error, 1e-5 / *std::min_element(preprocessing.std.begin(), preprocessing.std.end()));
  }
}

const AugmentOptions kNoBlur{.blur = false};

TEST(AugmentedPlainly, ChangesBrightness) {
  for (const double factor : {0.0, 0.6, 1.4}) {
    expect_agreement(pixels(8, 9), {.brightness = factor}, kNoBlur);
  }
}

TEST(AugmentedPlainly, ChangesContrastAboutTheMeanGreyOfEachImage) {
  for (const double factor : {0.0, 0.7, 1.3}) {
    expect_agreement(pixels(8, 9), {.contrast = factor}, kNoBlur);
  }
  // More pixels than are worked on at a time.
  expect_agreement(pixels(40, 50), {.contrast = 0.7}, kNoBlur);
}

TEST(AugmentedPlainly, ChangesSaturation) {
  for (const double factor : {0.0, 0.5, 1.5}) {
    expect_agreement(pixels(8, 9), {.saturation = factor}, kNoBlur);
  }
}

TEST(AugmentedPlainly, ChangesHue) {
  for (const double turn : {-0.5, -0.06, 0.01, 0.06, 0.3, 0.5}) {
    expect_agreement(pixels(8, 9), {.hue = turn}, kNoBlur);
  }
}

TEST(AugmentedPlainly, ChangesGamma) {
  for (const double gamma : {0.7, 1.0, 1.3}) {
    expect_agreement(pixels(8, 9), {.gamma = gamma}, kNoBlur);
  }
}

TEST(AugmentedPlainly, TurnsScalesAndShifts) {
  for (const PadMode padding : {PadMode::kEdge, PadMode::kReflect}) {
    const AugmentOptions options{.padding = padding, .blur = false};
    expect_agreement(pixels(16, 16), {.angle = 15}, options);
    expect_agreement(pixels(16, 16), {.angle = -15, .scale = 0.9}, options);
    expect_agreement(pixels(16, 16), {.scale = 1.1, .flip = true}, options);
    expect_agreement(pixels(16, 16), {.shift_x = 1, .shift_y = -0.5}, options);
    expect_agreement(pixels(9, 16), {.angle = 7, .shift_x = -1, .shift_y = 1}, options);
    // Far enough to see the end of the padding.
    expect_agreement(pixels(16, 16), {.angle = 45, .scale = 0.5}, options);
  }
}

TEST(AugmentedPlainly, Blurs) {
  for (const double sigma : {0.001, 0.2, 0.5, 4.0}) {
    expect_agreement(pixels(8, 9), {.sigma = sigma});
    expect_agreement(pixels(3, 2), {.sigma = sigma});  // the blur sees the frame of the padding
  }
}

TEST(AugmentedPlainly, DoesAllOfItInAnyOrder) {
  Preprocessing bgr = Preprocessing::imagenet();
  bgr.channels = "bgr";
  for (std::uint64_t i = 0; i < 60; ++i) {
    Random random(8, "plain", {i});
    const AugmentDraw draw = draw_augment(random, i % 2 == 0);
    const AugmentOptions options{.padding = i % 3 == 0 ? PadMode::kReflect : PadMode::kEdge,
                                 .blur = i % 4 != 0};
    const Preprocessing& preprocessing = i % 5 == 0 ? bgr : Preprocessing::imagenet();
    const at::Tensor images = pixels(i % 2 == 0 ? 32 : 11, i % 7 == 0 ? 20 : 32) * 4 - 2;
    expect_agreement(images, draw, options, preprocessing);
  }
}

TEST(AugmentedPlainly, LeavesImagesAloneWhereNothingChanges) {
  const at::Tensor images = pixels(8, 9).clamp(0, 1);
  const at::Tensor result = augmented(images, {}, {.noise = 0}, {});
  // A hue is a number up to 6, where float32 has steps of 5e-7.
  EXPECT_LT((result - images).abs().max().item<double>(), 1e-6);
}

}  // namespace
}  // namespace gala
