// `augmix` against pictures that PIL changed (tools/make_augmix_fixtures.py), and against the byte-wise AugMix that
// networks are trained with.
#include "gala/view/augmix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <numbers>

#include "gala/data/augmix.h"
#include "gala/data/npy.h"

namespace gala {
namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels fixture(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(GALA_TEST_SOURCE_DIR) / "tests" / "data" / "fixtures";
  const NpyArray array = read_npy(folder / ("augmix_" + name + ".npy"));
  const auto* begin = reinterpret_cast<const std::uint8_t*>(array.data.data());
  return {begin, begin + array.data.size()};
}

/// Interleaved bytes as images [1, 3, H, W] on pixels of 0 to 1.
at::Tensor as_images(const Pixels& pixels, std::int64_t height, std::int64_t width) {
  at::Tensor bytes = at::empty({height, width, 3}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), pixels.data(), pixels.size());
  return bytes.permute({2, 0, 1}).unsqueeze(0).to(at::kFloat).contiguous() / 255;
}

Pixels as_pixels(const at::Tensor& image) {
  const at::Tensor bytes = (image * 255).round().to(at::kByte).permute({1, 2, 0}).contiguous();
  const auto* begin = bytes.const_data_ptr<std::uint8_t>();
  return {begin, begin + bytes.numel()};
}

at::Tensor numbers_of(const AugmixDraw& draw) {
  const at::Tensor numbers = at::empty({kAugmixNumbers}, at::kDouble);
  std::memcpy(numbers.mutable_data_ptr(), &draw, sizeof(draw));
  return numbers;
}

/// One change alone, of the whole picture.
AugmixDraw alone(const AugmixChange& change) {
  AugmixDraw draw;
  draw.kept = 0;
  draw.changes[0][1] = change;
  return draw;
}

AugmixChange turned(double degrees) {
  AugmixChange change;
  change.cosine = std::cos(degrees * std::numbers::pi / 180);
  change.skew_x = -std::sin(degrees * std::numbers::pi / 180);
  change.skew_y = -change.skew_x;
  change.turn = 1;
  return change;
}

/// PIL's result, but for the places that nothing of the picture comes to: there PIL was told black.
void expect_pil(const std::string& name, const AugmixChange& change, const AffineMap& map) {
  constexpr std::int64_t kHeight = 24, kWidth = 32;
  const at::Tensor source = as_images(fixture("source"), kHeight, kWidth);
  const Pixels ours = as_pixels(augmixed(source, numbers_of(alone(change)), {})[0]);
  Pixels expected = fixture(name), white(expected.size(), 255), inside(expected.size());
  warp({white.data(), kHeight, kWidth, kWidth * 3}, map, inside);
  for (std::size_t i = 0; i < expected.size(); i += 3) {
    if (inside[i] == 0) expected[i] = 128;
  }
  EXPECT_EQ(ours, expected) << name;
}

TEST(Augmix, ChangesPicturesAsPilDoes) {
  constexpr AffineMap kStill = {1, 0, 0, 0, 1, 0};
  expect_pil("autocontrast", {.stretch = 1}, kStill);
  expect_pil("equalize", {.equalize = 1}, kStill);
  expect_pil("posterize_3", {.coarse = 32}, kStill);
  expect_pil("posterize_4", {.coarse = 16}, kStill);
  for (const int threshold : {256, 180, 100}) {
    expect_pil("solarize_" + std::to_string(threshold),
               {.threshold = static_cast<double>(threshold)}, kStill);
  }
  expect_pil("rotate_7", turned(7), rotation(7, 24, 32));
  expect_pil("rotate_-9", turned(-9), rotation(-9, 24, 32));
  expect_pil("shear_x_0.08", {.skew_x = 0.08}, {1, 0.08, 0, 0, 1, 0});
  expect_pil("shear_y_-0.05", {.skew_y = -0.05}, {1, 0, 0, -0.05, 1, 0});
  // 3 of 32 pixels, and -2 of 24: the shift is in thirtieths, towards zero.
  expect_pil("translate_x_3", {.shift_x = 3.3}, {1, 0, 3, 0, 1, 0});
  expect_pil("translate_y_-2", {.shift_y = -3.5}, {1, 0, 0, 0, 1, -2});
}

/// A change of interleaved bytes, byte by byte.
void change_plainly(const AugmixChange& change, Pixels& pixels, std::int64_t height,
                    std::int64_t width) {
  const double tall = static_cast<double>(height), broad = static_cast<double>(width);
  AffineMap map = {change.cosine, change.skew_x, std::trunc(change.shift_x * broad / 30),
                   change.skew_y, change.cosine, std::trunc(change.shift_y * tall / 30)};
  if (change.turn != 0) {
    // In PIL's order: the last bit decides where a level is cut off.
    map[2] = change.cosine * (-broad / 2) + change.skew_x * (-tall / 2) + broad / 2;
    map[5] = change.skew_y * (-broad / 2) + change.cosine * (-tall / 2) + tall / 2;
  }
  Pixels moved(pixels.size()), inside(pixels.size());
  const Pixels white(pixels.size(), 255);
  warp({pixels.data(), height, width, width * 3}, map, moved);
  warp({white.data(), height, width, width * 3}, map, inside);
  for (std::size_t i = 0; i < moved.size(); i += 3) {
    if (inside[i] == 0) moved[i] = 128;
  }
  pixels = moved;
  solarize(pixels, static_cast<int>(change.threshold));
  posterize(pixels, 8 - static_cast<int>(std::log2(change.coarse)));
  if (change.stretch != 0) stretch_contrast(pixels);
  if (change.equalize != 0) equalize_histogram(pixels);
}

/// What the view shows of one image's bytes, in 0 to 255.
std::vector<double> plainly(const Pixels& source, const AugmixDraw& draw, std::int64_t height,
                            std::int64_t width) {
  Pixels picture(source.size(), 0);
  const std::int64_t room_y = height / 8, room_x = width / 8;
  const auto down = static_cast<std::int64_t>(draw.crop_y * static_cast<double>(2 * room_y + 1));
  const auto right = static_cast<std::int64_t>(draw.crop_x * static_cast<double>(2 * room_x + 1));
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t from_y = y + down - room_y;
      const std::int64_t from_x = (draw.flip != 0 ? width - 1 - x : x) + right - room_x;
      if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= width) continue;
      for (std::int64_t c = 0; c < 3; ++c) {
        picture[static_cast<std::size_t>((y * width + x) * 3 + c)] =
            source[static_cast<std::size_t>((from_y * width + from_x) * 3 + c)];
      }
    }
  }
  std::vector<double> mixed(picture.size());
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = draw.kept * picture[i];
  for (int chain = 0; chain < kAugmixChains; ++chain) {
    Pixels changed = picture;
    for (const AugmixChange& change : draw.changes[chain]) {
      change_plainly(change, changed, height, width);
    }
    for (std::size_t i = 0; i < mixed.size(); ++i) {
      mixed[i] += (1 - draw.kept) * draw.weights[chain] * changed[i];
    }
  }
  return mixed;
}

/// Pixels of a middling range, so that contrast and equalisation have something to do.
Pixels noise(std::uint64_t seed, std::size_t count) {
  Random random(seed, "pixels of a test");
  Pixels pixels(count);
  for (auto& each : pixels) each = static_cast<std::uint8_t>(30 + random.below(180));
  return pixels;
}

TEST(Augmix, IsThePlainOne) {
  for (const auto& [height, width] :
       {std::pair<std::int64_t, std::int64_t>{32, 32}, {24, 40}, {7, 9}}) {
    for (std::uint64_t i = 0; i < 30; ++i) {
      Random random(i, "draws of a test");
      const AugmixDraw draw = draw_augmix(random, i % 2 == 0 ? 1 : 8);
      const auto count = static_cast<std::size_t>(height * width * 3);
      const Pixels first = noise(i, count), second = noise(i + 1000, count);
      Preprocessing preprocessing;
      preprocessing.mean = {0.5, 0.4, 0.3};
      preprocessing.std = {0.2, 0.3, 0.25};
      const at::Tensor mean = at::tensor(preprocessing.mean).view({1, 3, 1, 1});
      const at::Tensor deviation = at::tensor(preprocessing.std).view({1, 3, 1, 1});
      const at::Tensor images =
          at::cat({as_images(first, height, width), as_images(second, height, width)});
      const at::Tensor prepared = ((images - mean) / deviation).to(at::kFloat);
      const at::Tensor shown =
          augmixed(prepared, numbers_of(draw), preprocessing).to(at::kDouble) * deviation + mean;
      for (std::int64_t n = 0; n < 2; ++n) {
        const std::vector<double> expected = plainly(n == 0 ? first : second, draw, height, width);
        const at::Tensor plain =
            at::tensor(expected, at::kDouble).view({height, width, 3}).permute({2, 0, 1}) / 255;
        EXPECT_LT((shown[n] - plain).abs().max().item<double>(), 1e-6) << i << ' ' << n;
      }
    }
  }
}

TEST(Augmix, TakesChannelsInTheirOrder) {
  AugmixDraw draw = alone({.shift_x = 10});
  const at::Tensor images = as_images(noise(3, 16 * 16 * 3), 16, 16);
  Preprocessing turned_round;
  turned_round.channels = "bgr";
  const at::Tensor rgb = augmixed(images, numbers_of(draw), {});
  const at::Tensor bgr = augmixed(images.flip(1), numbers_of(draw), turned_round);
  EXPECT_TRUE(bgr.equal(rgb.flip(1)));
  EXPECT_NEAR(rgb[0][0][3][15].item<double>(), 128.0 / 255, 1e-7);
  EXPECT_EQ(rgb[0][2][3][15].item<double>(), 0);
}

TEST(Augmix, KeepsTheLayoutAndWhatIsBroken) {
  AugmixView view({});
  view.attach(at::kCPU, {});
  view.draw(4, 9, 2);
  at::Tensor images = at::rand({3, 3, 12, 10});
  const at::Tensor shown = view.look(images, 1);
  const at::Tensor last = view.look(images.contiguous(at::MemoryFormat::ChannelsLast), 1);
  EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(last.equal(shown));
  EXPECT_FALSE(view.look(images, 0).equal(shown));
  EXPECT_EQ(view.look(at::empty({0, 3, 12, 10}), 0).size(0), 0);
  images[1][2][3][4] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor beside = view.look(images, 1);
  EXPECT_TRUE(beside[0].equal(shown[0]));
  EXPECT_FALSE(at::isfinite(beside[1]).any().item<bool>());
}

TEST(Augmix, DrawsBySeedAndStepAlone) {
  const at::Tensor images = at::rand({1, 3, 16, 16});
  const auto shown = [&](std::uint64_t seed, std::int64_t number, int others) {
    AugmixView view({});
    view.attach(at::kCPU, {});
    view.draw(seed, number, 1 + others);
    return view.look(images, 0);
  };
  EXPECT_TRUE(shown(1, 2, 0).equal(shown(1, 2, 5)));
  EXPECT_FALSE(shown(1, 2, 0).equal(shown(1, 3, 0)));
  EXPECT_FALSE(shown(1, 2, 0).equal(shown(2, 2, 0)));
}

/// The published numbers at severity 1, over 3000 draws of nine changes in expectation six times over.
TEST(AugmixDraws, AreThePublishedOnes) {
  constexpr int kDraws = 3000;
  std::map<std::string, int> kinds;
  double kept = 0, flips = 0, first = 0, count = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    Random random(i, "many draws");
    const AugmixDraw draw = draw_augmix(random, 1);
    kept += draw.kept / kDraws;
    flips += draw.flip / kDraws;
    first += draw.weights[0] / kDraws;
    EXPECT_NEAR(draw.weights[0] + draw.weights[1] + draw.weights[2], 1, 1e-12);
    for (const auto& chain : draw.changes) {
      for (const AugmixChange& change : chain) {
        std::string kind;
        if (change.stretch == 1) kind = "autocontrast";
        if (change.equalize == 1) kind = "equalize";
        if (change.turn == 1) {
          kind = "rotate";
          const double degrees = std::abs(std::asin(change.skew_y)) * 180 / std::numbers::pi;
          EXPECT_NEAR(degrees, std::round(degrees), 1e-9);
          EXPECT_LT(degrees, 2.5);
          EXPECT_NEAR(std::hypot(change.cosine, change.skew_x), 1, 1e-12);
        } else if (change.skew_x != 0) {
          kind = "shear_x";
          EXPECT_LE(std::abs(change.skew_x), 0.03);
          EXPECT_GE(std::abs(change.skew_x), 0.003);
        } else if (change.skew_y != 0) {
          kind = "shear_y";
          EXPECT_LE(std::abs(change.skew_y), 0.03);
        }
        if (change.shift_x != 0) kind = "translate_x";
        if (change.shift_y != 0) kind = "translate_y";
        if (change.threshold != 256) {
          kind = "solarize";
          EXPECT_GE(change.threshold, 231);
          EXPECT_EQ(change.threshold, std::round(change.threshold));
        }
        if (change.coarse != 1) {
          kind = "posterize";
          EXPECT_EQ(change.coarse, 16);
        }
        if (!kind.empty()) {
          ++kinds[kind];
          ++count;
        }
      }
    }
  }
  EXPECT_NEAR(kept, 0.5, 0.03);
  EXPECT_NEAR(flips, 0.5, 0.05);
  EXPECT_NEAR(first, 1.0 / 3, 0.03);
  EXPECT_NEAR(count / kDraws, 6, 0.15);
  EXPECT_EQ(kinds.size(), 9u);
  for (const auto& [kind, number] : kinds) EXPECT_NEAR(number / count, 1.0 / 9, 0.01) << kind;
}

}  // namespace
}  // namespace gala
