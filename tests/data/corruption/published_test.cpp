// Against what the published functions made of the same images.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "gala/data/corruption/corruption.h"
#include "gala/data/corruption/pixels.h"
#include "tests/data/corruption/test_images.h"

namespace gala::test {
namespace {

/// Over all values of all images, in levels of 0 .. 255.
struct Statistics {
  double mean_abs = 0, rms = 0, level = 0, deviation = 0;
};

using Truth = std::map<std::pair<std::string, int>, Statistics>;

Truth read_truth(const std::string& path) {
  std::ifstream file(GALA_TEST_GOLDEN_DIR "/" + path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "corruption,severity,mean_abs,rms,level,std");
  Truth truth;
  while (std::getline(file, line)) {
    for (char& c : line) c = c == ',' ? ' ' : c;
    std::istringstream words(line);
    std::string name;
    int severity = 0;
    Statistics row;
    words >> name >> severity >> row.mean_abs >> row.rms >> row.level >> row.deviation;
    truth[{name, severity}] = row;
  }
  EXPECT_EQ(truth.size(), 95u);
  return truth;
}

Statistics measure(const std::vector<std::uint8_t>& clean, const Corruptor& corruptor) {
  std::int64_t change = 0, change_square = 0, sum = 0, square = 0;
  const auto bytes = static_cast<std::size_t>(corruption_bytes(corruptor.set()));
  std::vector<std::uint8_t> output(bytes);
  const std::size_t count = clean.size() / bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto input = std::span(clean).subspan(i * bytes, bytes);
    corruptor.apply(static_cast<std::int64_t>(i), input, output);
    for (std::size_t k = 0; k < bytes; ++k) {
      const int difference = output[k] - input[k], value = output[k];
      change += std::abs(difference), change_square += difference * difference;
      sum += value, square += value * value;
    }
  }
  const auto n = static_cast<double>(clean.size()), mean = static_cast<double>(sum) / n;
  return {static_cast<double>(change) / n, std::sqrt(static_cast<double>(change_square) / n), mean,
          std::sqrt(static_cast<double>(square) / n - mean * mean)};
}

/// How many values differ, and by how much at most.
struct Difference {
  int count = 0, largest = 0;
};

Difference difference(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  Difference result;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const int distance = std::abs(a[k] - b[k]);
    result.count += distance > 0, result.largest = std::max(result.largest, distance);
  }
  return result;
}

bool is_deterministic(Corruption corruption) {
  switch (corruption) {
    case Corruption::kDefocusBlur:
    case Corruption::kZoomBlur:
    case Corruption::kBrightness:
    case Corruption::kContrast:
    case Corruption::kPixelate:
    case Corruption::kJpegCompression:
    case Corruption::kGaussianBlur:
    case Corruption::kSaturate:
      return true;
    default:
      return false;
  }
}

double tolerance(Corruption corruption) {
  if (is_deterministic(corruption)) return 0.01;
  if (corruption == Corruption::kFrost) return 0.10;
  return corruption == Corruption::kSpatter ? 0.05 : 0.03;
}

/// The mean over so many seeds against the truth, of which it may be off by a share.
void compare(const std::vector<std::uint8_t>& clean, Corruption corruption, CorruptionSet set,
             int seeds, const Truth& truth, double share) {
  const auto textures = FrostTextures::procedural(static_cast<int>(corruption_side(set)));
  for (int severity = 1; severity <= kSeverities; ++severity) {
    Statistics mean;
    for (int seed = 0; seed < seeds; ++seed) {
      const Corruptor corruptor(corruption, severity, static_cast<std::uint64_t>(seed), nullptr,
                                set);
      const auto [mean_abs, rms, level, deviation] = measure(clean, corruptor);
      mean.mean_abs += mean_abs / seeds, mean.rms += rms / seeds;
      mean.level += level / seeds, mean.deviation += deviation / seeds;
    }
    const Statistics& expected = truth.at({std::string(corruption_name(corruption)), severity});
    EXPECT_NEAR(mean.mean_abs, expected.mean_abs, share * expected.mean_abs) << severity;
    EXPECT_NEAR(mean.rms, expected.rms, share * expected.rms) << severity;
    EXPECT_NEAR(mean.level, expected.level, share * expected.level) << severity;
    EXPECT_NEAR(mean.deviation, expected.deviation, share * expected.deviation) << severity;
  }
}

class PublishedCorruption : public testing::TestWithParam<int> {};

TEST_P(PublishedCorruption, ChangesTheFirstThousandImagesAsMuch) {
  static const std::vector<std::uint8_t> clean = cifar_images(1000);
  static const Truth truth = read_truth("truth.csv");
  const auto corruption = static_cast<Corruption>(GetParam());
  compare(clean, corruption, CorruptionSet::kCifar, is_deterministic(corruption) ? 1 : 4, truth,
          tolerance(corruption));
}

/// Of these every picture comes out another way, and 20 pictures are few.
int seeds_for_mosaics(Corruption corruption) {
  if (is_deterministic(corruption)) return 1;
  switch (corruption) {
    case Corruption::kFog:
      return 60;
    case Corruption::kFrost:
    case Corruption::kSpatter:
      return 20;
    case Corruption::kMotionBlur:
      return 12;
    case Corruption::kElasticTransform:
      return 6;
    default:
      return 3;
  }
}

TEST_P(PublishedCorruption, ChangesTwentyLargePicturesAsMuch) {
  static const std::vector<std::uint8_t> clean = mosaics(20);
  static const Truth truth = read_truth("truth_imagenet.csv");
  const auto corruption = static_cast<Corruption>(GetParam());
  compare(clean, corruption, CorruptionSet::kImageNet, seeds_for_mosaics(corruption), truth,
          is_deterministic(corruption) ? 0.001 : tolerance(corruption));
}

INSTANTIATE_TEST_SUITE_P(Each, PublishedCorruption, testing::Range(0, 19),
                         [](const auto& parameter) {
                           return std::string(
                               corruption_name(static_cast<Corruption>(parameter.param)));
                         });

constexpr Corruption kRows[] = {Corruption::kDefocusBlur,  Corruption::kZoomBlur,
                                Corruption::kBrightness,   Corruption::kContrast,
                                Corruption::kPixelate,     Corruption::kJpegCompression,
                                Corruption::kGaussianBlur, Corruption::kSaturate};

TEST(PublishedCorruptions, WithoutChanceGiveTheSamePixels) {
  const auto clean = cifar_images(2);
  const Picture published = read_png(GALA_TEST_GOLDEN_DIR "/published.png");
  std::vector<std::uint8_t> output(kImageBytes);
  for (std::size_t row = 0; row < std::size(kRows); ++row) {
    for (int severity = 1; severity <= kSeverities; ++severity) {
      Corruptor(kRows[row], severity, 0).apply(1, image_at(clean, 1), output);
      const auto expected = tile(published, row, static_cast<std::size_t>(severity - 1));
      const auto [different, largest] = difference(output, expected);
      EXPECT_LE(largest, 1) << corruption_name(kRows[row]) << " " << severity;
      // Where a value is a whole level up to rounding, either side of the cut is right.
      EXPECT_LT(different, 0.02 * kImageBytes) << corruption_name(kRows[row]) << " " << severity;
    }
  }
}

TEST(PublishedCorruptions, WithoutChanceGiveTheSamePixelsInCornerAndMiddleOfLargePictures) {
  const auto clean = mosaics(2);
  const Picture published = read_png(GALA_TEST_GOLDEN_DIR "/published_imagenet.png");
  std::vector<std::uint8_t> output(kMosaicBytes);
  for (std::size_t row = 0; row < std::size(kRows); ++row) {
    for (std::size_t severity = 1; severity <= 5; ++severity) {
      const Corruptor corruptor(kRows[row], static_cast<int>(severity), 0, nullptr,
                                CorruptionSet::kImageNet);
      corruptor.apply(1, std::span(clean).subspan(kMosaicBytes), output);
      // A disk of radius 3 has 29 pixels: one sum in 29 is a whole level.
      const double share = kRows[row] == Corruption::kDefocusBlur && severity == 1 ? 0.05 : 0.02;
      for (const bool middle : {false, true}) {
        const auto expected = tile(published, row, severity - 1 + (middle ? 5 : 0));
        const auto [different, largest] =
            difference(tile_of_mosaic(output, middle ? 96 : 0), expected);
        EXPECT_LE(largest, 1) << corruption_name(kRows[row]) << " " << severity;
        EXPECT_LT(different, share * kImageBytes) << corruption_name(kRows[row]) << " " << severity;
      }
    }
  }
}

TEST(MotionFilter, GivesThePixelsOfImageMagickOnLargePictures) {
  const auto clean = mosaics(2);
  const Picture expected = read_png(GALA_TEST_GOLDEN_DIR "/imagemagick_motion_large.png");
  constexpr double kAngles[] = {-45, -20, 0, 33, 45, -100};
  const MotionFilter filter(20, 15);
  Colours image(224), blurred(224);
  read_colours(&clean[kMosaicBytes], image);
  for (std::size_t i = 0; i < std::size(kAngles); ++i) {
    filter.apply(kAngles[i], image, blurred);
    std::vector<std::uint8_t> output(kMosaicBytes);
    write_levels(blurred, output.data());
    const auto [different, largest] = difference(tile_of_mosaic(output, 0), tile(expected, 0, i));
    EXPECT_LE(largest, 1) << kAngles[i];
    EXPECT_LE(different, 3) << kAngles[i];  // cuts decided by the last bits
  }
}

TEST(MotionFilter, GivesThePixelsOfImageMagick) {
  const auto clean = cifar_images(2);
  const Picture expected = read_png(GALA_TEST_GOLDEN_DIR "/imagemagick_motion.png");
  constexpr double kAngles[] = {-45, -20, 0, 33, 45, -100};
  const MotionFilter filter(9, 2.5);
  Colours image(32), blurred(32);
  read_colours(image_at(clean, 1).data(), image);
  for (std::size_t i = 0; i < std::size(kAngles); ++i) {
    filter.apply(kAngles[i], image, blurred);
    std::vector<std::uint8_t> output(kImageBytes);
    write_levels(blurred, output.data());
    const auto [different, largest] = difference(output, tile(expected, 0, i));
    EXPECT_LE(largest, 1) << kAngles[i];
    EXPECT_LE(different, 3) << kAngles[i];  // cuts decided by the last bits
  }
}

}  // namespace
}  // namespace gala::test
