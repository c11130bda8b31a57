#include "gala/data/corruption/corruption.h"

#include <cmath>
#include <set>
#include <thread>

#include "gala/base/error.h"
#include "tests/data/corruption/test_images.h"

namespace gala::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes corrupt(Corruption corruption, int severity, const Bytes& image, std::uint64_t seed = 0,
              std::int64_t index = 0) {
  Bytes output(kImageBytes);
  Corruptor(corruption, severity, seed).apply(index, image, output);
  return output;
}

Bytes flat(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  Bytes image;
  for (int i = 0; i < 1024; ++i) image.insert(image.end(), {red, green, blue});
  return image;
}

template <class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(Corruption, HasTheNineteenPublishedNames) {
  const auto names = enum_names(Corruption{});
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), 19u);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(parse_corruption(names[i]), static_cast<Corruption>(i));
    EXPECT_EQ(corruption_name(static_cast<Corruption>(i)), names[i]);
  }
  EXPECT_EQ(corruption_name(Corruption::kJpegCompression), names[kBenchmarkCorruptions - 1]);
}

TEST(Corruption, SaysWhichNamesAreKnown) {
  const std::string message = message_of([] { parse_corruption("motion_blurr"); });
  EXPECT_NE(message.find("motion_blurr"), std::string::npos) << message;
  EXPECT_NE(message.find("\"motion_blur\""), std::string::npos) << message;
}

TEST(Corruptor, RefusesSeveritiesBeyondOneToFive) {
  for (int severity : {-1, 0, 6}) {
    const auto message = message_of([&] { Corruptor(Corruption::kFog, severity, 0); });
    EXPECT_NE(message.find(std::to_string(severity)), std::string::npos) << message;
    EXPECT_NE(message.find("1 to 5"), std::string::npos) << message;
  }
}

TEST(Corruptor, RefusesImagesOfAnotherSize) {
  const Corruptor corruptor(Corruption::kContrast, 1, 0);
  Bytes image(kImageBytes), small(28 * 28 * 3);
  EXPECT_THROW(corruptor.apply(0, small, image), ConfigError);
  EXPECT_THROW(corruptor.apply(0, image, small), ConfigError);
  EXPECT_THROW(corruption_set_for(32, 31), ConfigError);
  EXPECT_THROW(corruption_set_for(224, 32), ConfigError);
  EXPECT_THROW(corruption_set_for(64, 64), ConfigError);
  EXPECT_EQ(corruption_set_for(32, 32), CorruptionSet::kCifar);
  EXPECT_EQ(corruption_set_for(224, 224), CorruptionSet::kImageNet);
  Bytes large(kMosaicBytes);
  EXPECT_THROW(corruptor.apply(0, large, large), ConfigError);
  const Corruptor for_large(Corruption::kContrast, 1, 0, nullptr, CorruptionSet::kImageNet);
  EXPECT_THROW(for_large.apply(0, image, image), ConfigError);
}

TEST(Corruptor, GivesTheSameLargePictureOnAnyThread) {
  const auto clean = mosaics(1);
  for (int kind = 0; kind < 19; ++kind) {
    const auto corruption = static_cast<Corruption>(kind);
    const Corruptor corruptor(corruption, 5, 7, nullptr, CorruptionSet::kImageNet);
    std::vector<Bytes> outputs(3, Bytes(kMosaicBytes));
    std::vector<std::thread> threads;
    for (Bytes& output : outputs) {
      threads.emplace_back([&] { corruptor.apply(11, clean, output); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(outputs[0], outputs[1]) << corruption_name(corruption);
    EXPECT_EQ(outputs[0], outputs[2]) << corruption_name(corruption);
    EXPECT_NE(outputs[0], clean) << corruption_name(corruption);
  }
}

TEST(DefocusBlur, BrightensLargeFlatPicturesAsItsKernelDoes) {
  // The published kernel of radius 8 sums to more than 1: the disk meets the array's border in four
  // places, where OpenCV mirrors what lies next to it. Over a flat picture that is its sum alone.
  const double side = std::exp(-2.0), soft[] = {side / (1 + 2 * side), 1 / (1 + 2 * side)};
  const auto inside = [](int y, int x) { return y * y + x * x <= 64 ? 1.0 : 0.0; };
  double area = 0, sum = 0;
  for (int y = -8; y <= 8; ++y) {
    for (int x = -8; x <= 8; ++x) area += inside(y, x);
  }
  const auto mirrored = [](int i) { return i > 8 ? 16 - i : i < -8 ? -16 - i : i; };
  for (int y = -8; y <= 8; ++y) {
    for (int x = -8; x <= 8; ++x) {
      for (int v = -1; v <= 1; ++v) {
        for (int u = -1; u <= 1; ++u) {
          sum += soft[v == 0] * soft[u == 0] * inside(mirrored(y + v), mirrored(x + u)) / area;
        }
      }
    }
  }
  ASSERT_GT(sum, 1.01);
  Bytes output(kMosaicBytes);
  Corruptor(Corruption::kDefocusBlur, 4, 0, nullptr, CorruptionSet::kImageNet)
      .apply(0, Bytes(kMosaicBytes, 150), output);
  EXPECT_EQ(output, Bytes(kMosaicBytes, static_cast<std::uint8_t>(150 * sum)));
}

TEST(Corruptor, GivesTheSameBytesOnAnyThreadInAnyOrder) {
  constexpr std::size_t kCount = 24, kThreads = 4;
  const auto clean = cifar_images(kCount);
  for (int kind = 0; kind < 19; ++kind) {
    for (int severity : {1, 3, 5}) {
      const Corruptor corruptor(static_cast<Corruption>(kind), severity, 7);
      Bytes forward(clean.size()), threaded(clean.size());
      for (std::size_t i = 0; i < kCount; ++i) {
        corruptor.apply(static_cast<std::int64_t>(i), image_at(clean, i),
                        std::span(forward).subspan(i * kImageBytes, kImageBytes));
      }
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          const Corruptor own(static_cast<Corruption>(kind), severity, 7);
          for (std::size_t n = kCount; n-- > 0;) {
            if (n % kThreads != t) continue;
            (n % 2 ? own : corruptor)
                .apply(static_cast<std::int64_t>(n), image_at(clean, n),
                       std::span(threaded).subspan(n * kImageBytes, kImageBytes));
          }
        });
      }
      for (auto& thread : threads) thread.join();
      EXPECT_EQ(forward, threaded) << enum_names(Corruption{})[static_cast<std::size_t>(kind)];
    }
  }
}

TEST(Corruptor, DrawsAnewForEverySeedAndImage) {
  const auto images = cifar_images(1);
  for (Corruption corruption :
       {Corruption::kGaussianNoise, Corruption::kShotNoise, Corruption::kImpulseNoise,
        Corruption::kGlassBlur, Corruption::kSnow, Corruption::kFrost, Corruption::kFog,
        Corruption::kElasticTransform, Corruption::kSpeckleNoise, Corruption::kSpatter}) {
    const auto first = corrupt(corruption, 3, images, 0, 0);
    EXPECT_NE(first, corrupt(corruption, 3, images, 1, 0)) << corruption_name(corruption);
    EXPECT_NE(first, corrupt(corruption, 3, images, 0, 1)) << corruption_name(corruption);
  }
}

TEST(Corruptor, GrowsWithSeverity) {
  constexpr std::size_t kCount = 60;
  const auto clean = cifar_images(kCount);
  for (Corruption corruption :
       {Corruption::kGaussianNoise, Corruption::kShotNoise, Corruption::kImpulseNoise,
        Corruption::kDefocusBlur, Corruption::kZoomBlur, Corruption::kSnow, Corruption::kFog,
        Corruption::kBrightness, Corruption::kContrast, Corruption::kPixelate,
        Corruption::kJpegCompression, Corruption::kSpeckleNoise, Corruption::kGaussianBlur}) {
    double before = 0;
    for (int severity = 1; severity <= kSeverities; ++severity) {
      const Corruptor corruptor(corruption, severity, 3);
      Bytes output(kImageBytes);
      double change = 0;
      for (std::size_t i = 0; i < kCount; ++i) {
        corruptor.apply(static_cast<std::int64_t>(i), image_at(clean, i), output);
        for (std::size_t k = 0; k < kImageBytes; ++k) {
          change += std::abs(output[k] - image_at(clean, i)[k]);
        }
      }
      EXPECT_GT(change, before) << corruption_name(corruption) << " " << severity;
      before = change;
    }
  }
}

TEST(Blurs, LeaveAFlatImageFlat) {
  for (Corruption corruption :
       {Corruption::kDefocusBlur, Corruption::kGlassBlur, Corruption::kMotionBlur,
        Corruption::kZoomBlur, Corruption::kElasticTransform, Corruption::kPixelate,
        Corruption::kGaussianBlur, Corruption::kContrast}) {
    for (int severity = 1; severity <= kSeverities; ++severity) {
      for (int level : {0, 1, 11, 64, 91, 127, 128, 182, 249, 254, 255}) {
        const auto value = static_cast<std::uint8_t>(level);
        const auto image = flat(value, static_cast<std::uint8_t>(255 - level), value);
        EXPECT_EQ(corrupt(corruption, severity, image), image)
            << corruption_name(corruption) << " " << severity << " level " << level;
      }
    }
  }
}

TEST(Brightness, AddsToAGreyPixel) {
  // 100 + 0.1 * 255 = 125.5, cut to 125; 240 + 0.3 * 255 is beyond white.
  EXPECT_EQ(corrupt(Corruption::kBrightness, 2, flat(100, 100, 100)), flat(125, 125, 125));
  EXPECT_EQ(corrupt(Corruption::kBrightness, 5, flat(240, 240, 240)), flat(255, 255, 255));
  EXPECT_EQ(corrupt(Corruption::kBrightness, 5, flat(0, 0, 0)), flat(76, 76, 76));
}

TEST(Brightness, KeepsHueAndSaturation) {
  // (120, 60, 30) has value 120; at 0.15 it becomes 158.25, and all channels grow alike.
  EXPECT_EQ(corrupt(Corruption::kBrightness, 3, flat(120, 60, 30)), flat(158, 79, 39));
}

TEST(Saturate, MovesChannelsAwayFromOrTowardsTheLargest) {
  EXPECT_EQ(corrupt(Corruption::kSaturate, 1, flat(201, 1, 1)), flat(201, 141, 141));
  EXPECT_EQ(corrupt(Corruption::kSaturate, 4, flat(100, 200, 150)), flat(0, 200, 100));
  EXPECT_EQ(corrupt(Corruption::kSaturate, 3, flat(70, 70, 70)), flat(70, 70, 70));
  EXPECT_EQ(corrupt(Corruption::kSaturate, 5, flat(0, 0, 0)), flat(0, 0, 0));
}

TEST(Contrast, PullsTowardsTheMeanOfEachChannel) {
  Bytes image = flat(0, 50, 200);
  for (std::size_t i = 0; i < kImageBytes / 2; i += 3) image[i] = 100;  // mean of red: 50
  const auto output = corrupt(Corruption::kContrast, 2, image);
  EXPECT_EQ(output[0], 75);
  EXPECT_EQ(output[kImageBytes - 3], 25);
  EXPECT_EQ(output[1], 50);
  EXPECT_EQ(output[2], 200);
}

TEST(ImpulseNoise, SetsTheStatedShareToTheExtremes) {
  constexpr double kShare[] = {0.01, 0.02, 0.03, 0.05, 0.07};
  for (int severity = 1; severity <= kSeverities; ++severity) {
    int low = 0, high = 0, kept = 0;
    for (int i = 0; i < 100; ++i) {
      const auto output = corrupt(Corruption::kImpulseNoise, severity, flat(90, 91, 92), 0, i);
      for (std::size_t k = 0; k < kImageBytes; ++k) {
        low += output[k] == 0, high += output[k] == 255, kept += output[k] == 90 + k % 3;
      }
    }
    const double n = 100.0 * kImageBytes, half = kShare[severity - 1] / 2;
    EXPECT_NEAR(low / n, half, 5 * std::sqrt(half / n));
    EXPECT_NEAR(high / n, half, 5 * std::sqrt(half / n));
    EXPECT_EQ(low + high + kept, n);
  }
}

TEST(Noise, ThatScalesWithLightLeavesBlackAlone) {
  for (int severity = 1; severity <= kSeverities; ++severity) {
    EXPECT_EQ(corrupt(Corruption::kShotNoise, severity, flat(0, 0, 0)), flat(0, 0, 0));
    EXPECT_EQ(corrupt(Corruption::kSpeckleNoise, severity, flat(0, 0, 0)), flat(0, 0, 0));
  }
}

TEST(ShotNoise, HasTheVarianceOfPhotons) {
  // Level 102 is 0.4 of white: 20 of 50 photons on average, each worth 5.1 levels.
  double sum = 0, square = 0;
  for (int i = 0; i < 50; ++i) {
    for (std::uint8_t value : corrupt(Corruption::kShotNoise, 5, flat(102, 102, 102), 0, i)) {
      const double photons = std::ceil(value / 5.1);  // undoes the cut to whole levels
      sum += photons, square += photons * photons;
    }
  }
  const double n = 50.0 * kImageBytes, mean = sum / n;
  EXPECT_NEAR(mean, 20, 5 * std::sqrt(20 / n));
  EXPECT_NEAR(square / n - mean * mean, 20, 0.4);
}

TEST(Fog, LeavesABlackImageBlack) {
  EXPECT_EQ(corrupt(Corruption::kFog, 5, flat(0, 0, 0)), flat(0, 0, 0));
}

TEST(JpegCompression, KeepsMiddleGrey) {
  EXPECT_EQ(corrupt(Corruption::kJpegCompression, 5, flat(128, 128, 128)), flat(128, 128, 128));
}

TEST(Snow, OnlyAddsLight) {
  const auto image = cifar_images(1);
  for (int severity = 1; severity <= kSeverities; ++severity) {
    const auto output = corrupt(Corruption::kSnow, severity, image);
    for (std::size_t k = 0; k < kImageBytes; ++k) EXPECT_GE(output[k] + 1, image[k]);
  }
}

FrostTexture photograph(std::int64_t height, std::int64_t width, std::uint8_t level) {
  return {height, width, Bytes(static_cast<std::size_t>(height * width * 3), level)};
}

TEST(Frost, LaysGivenPhotographsOverTheImage) {
  const auto textures = FrostTextures::from_photographs({photograph(165, 200, 200)});
  Bytes output(kImageBytes);
  // 0.75 * 100 + 0.45 * 200 = 165
  Corruptor(Corruption::kFrost, 5, 0, textures).apply(0, flat(100, 100, 100), output);
  EXPECT_EQ(output, flat(165, 165, 165));
}

TEST(Frost, ReadsEveryFifthPixelOfAPhotograph) {
  auto photo = photograph(170, 170, 0);
  for (std::size_t y = 2; y < 170; y += 5) {
    for (std::size_t x = 2; x < 170; x += 5) photo.pixels[(y * 170 + x) * 3] = 250;
  }
  const auto textures = FrostTextures::from_photographs({photo});
  const FrostTexture& texture = textures->textures()[0];
  EXPECT_EQ(texture.height, 34);
  EXPECT_EQ(texture.width, 34);
  for (std::size_t i = 0; i < texture.pixels.size(); ++i) {
    EXPECT_EQ(texture.pixels[i], i % 3 == 0 ? 250 : 0);
  }
}

TEST(Frost, RefusesPhotographsWithoutRoomForACrop) {
  EXPECT_THROW(FrostTextures::from_photographs({}), ConfigError);
  EXPECT_THROW(FrostTextures::from_photographs({photograph(164, 400, 1)}), ConfigError);
  auto cut_short = photograph(200, 200, 1);
  cut_short.pixels.pop_back();
  EXPECT_THROW(FrostTextures::from_photographs({cut_short}), ConfigError);
}

TEST(Frost, TakesPhotographsAsTheyAreForLargePictures) {
  EXPECT_THROW(FrostTextures::from_photographs({photograph(224, 400, 1)}, 224), ConfigError);
  const auto textures = FrostTextures::from_photographs({photograph(225, 230, 200)}, 224);
  EXPECT_EQ(textures->textures()[0].height, 225);
  Bytes output(kMosaicBytes);
  // 0.6 * 100 + 0.75 * 200 = 210
  Corruptor(Corruption::kFrost, 5, 0, textures, CorruptionSet::kImageNet)
      .apply(0, Bytes(kMosaicBytes, 100), output);
  EXPECT_EQ(output, Bytes(kMosaicBytes, 210));
  const auto message = message_of([&] { Corruptor(Corruption::kFrost, 5, 0, textures); });
  EXPECT_NE(message.find("32x32"), std::string::npos) << message;
}

TEST(Frost, MakesFiveTexturesAlwaysAlike) {
  const auto first = FrostTextures::procedural(), second = FrostTextures::procedural();
  ASSERT_EQ(first->textures().size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_GT(first->textures()[i].height, 32);
    EXPECT_GT(first->textures()[i].width, 32);
    EXPECT_EQ(first->textures()[i].pixels, second->textures()[i].pixels);
  }
}

}  // namespace
}  // namespace gala::test
