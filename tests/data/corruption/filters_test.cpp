#include <cmath>
#include <fstream>
#include <sstream>

#include "gala/data/corruption/edges.h"
#include "gala/data/corruption/normal.h"
#include "gala/data/corruption/pixels.h"
#include "tests/data/corruption/test_images.h"

namespace gala::test {
namespace {

constexpr int kSide = 32, kPixels = kSide * kSide;

TEST(GaussianFilter, SpreadsAPointAsTheFormulaSays) {
  Plane image(kSide);
  image[16 * kSide + 16] = 1;
  const GaussianFilter filter(1.0);
  ASSERT_EQ(filter.radius(), 4);
  filter.apply<Border::kReplicate>(image);
  double sum = 0;
  for (int k = -4; k <= 4; ++k) sum += std::exp(-0.5 * k * k);
  for (int dy = -5; dy <= 5; ++dy) {
    for (int dx = -5; dx <= 5; ++dx) {
      const bool inside = std::abs(dy) <= 4 && std::abs(dx) <= 4;
      const double expected = inside ? std::exp(-0.5 * (dx * dx + dy * dy)) / (sum * sum) : 0;
      EXPECT_NEAR(image[(16 + dy) * kSide + 16 + dx], expected, 1e-7);
    }
  }
}

TEST(GaussianFilter, KeepsTheSumUnderReflection) {
  Plane image(kSide);
  image[0] = 1, image[kPixels - 1] = 2, image[40] = 3;
  GaussianFilter(6.4, 3).apply<Border::kReflect>(image);
  double sum = 0;
  for (float value : image) sum += value;
  EXPECT_NEAR(sum, 6, 1e-4);
}

TEST(BorderIndex, FoldsBackByTheThreeRules) {
  EXPECT_EQ(border_index<Border::kReplicate>(-3, kSide), 0);
  EXPECT_EQ(border_index<Border::kReplicate>(34, kSide), 31);
  EXPECT_EQ(border_index<Border::kReflect>(-1, kSide), 0);
  EXPECT_EQ(border_index<Border::kReflect>(33, kSide), 30);
  EXPECT_EQ(border_index<Border::kReflect101>(-1, kSide), 1);
  EXPECT_EQ(border_index<Border::kReflect101>(33, kSide), 29);
}

TEST(BorderIndex, GoesOnForEver) {
  // Steps along the endless row, and turns where the picture ends.
  for (const bool twice : {true, false}) {  // whether the last pixel comes twice
    int place = 0, step = 1;
    for (int i = 0; i < 300; ++i) {
      const int found =
          twice ? border_index<Border::kReflect>(i, 7) : border_index<Border::kReflect101>(i, 7);
      const int mirrored = twice ? border_index<Border::kReflect>(-1 - i, 7)
                                 : border_index<Border::kReflect101>(-i, 7);
      EXPECT_EQ(found, place) << i;
      EXPECT_EQ(mirrored, place) << i;
      const bool at_end = place + step < 0 || place + step > 6;
      if (at_end) step = -step;
      if (!at_end || !twice) place += step;
    }
  }
}

TEST(GaussianFilter, WiderThanThePictureEqualsAPlainSum) {
  Plane image(9), filtered(9);
  for (int i = 0; i < 81; ++i) image[i] = static_cast<float>(i * 37 % 101);
  filtered = image;
  const GaussianFilter filter(7, 3);
  ASSERT_EQ(filter.radius(), 21);
  filter.apply<Border::kReflect>(filtered);
  double sum = 0;
  for (int k = -21; k <= 21; ++k) sum += std::exp(-k * k / 98.0);
  for (const int at : {0, 4, 8}) {
    double expected = 0;
    for (int dy = -21; dy <= 21; ++dy) {
      for (int dx = -21; dx <= 21; ++dx) {
        const int y = (at + dy + 180) % 18, x = (at + dx + 180) % 18;
        const int i = (y < 9 ? y : 17 - y) * 9 + (x < 9 ? x : 17 - x);
        expected += std::exp(-(dy * dy + dx * dx) / 98.0) / (sum * sum) * image[i];
      }
    }
    EXPECT_NEAR(filtered[at * 10], expected, 1e-3);
  }
}

TEST(SampleBilinear, IsExactOnAPlane) {
  Plane image(kSide);
  for (int i = 0; i < kPixels; ++i) image[i] = static_cast<float>(2 * (i / kSide) + i % kSide);
  EXPECT_FLOAT_EQ((sample_bilinear<Border::kReflect>(image, 3.25f, 7.5f)), 14);
  EXPECT_FLOAT_EQ((sample_bilinear<Border::kReflect>(image, 5, 9)), 19);
  EXPECT_FLOAT_EQ((sample_bilinear<Border::kReflect>(image, -0.5f, 9)), 9);
  EXPECT_FLOAT_EQ((sample_bilinear<Border::kReflect101>(image, -0.5f, 9)), 10);
}

TEST(ClippedZoom, ByOneIsTheImage) {
  Plane image(kSide), zoomed(kSide);
  for (int i = 0; i < kPixels; ++i) image[i] = static_cast<float>(i % 97);
  ClippedZoom(kSide, 1).add_to(image, zoomed);
  EXPECT_EQ(image, zoomed);
}

TEST(ClippedZoom, EnlargesARampByItsFactor) {
  Plane image(kSide), zoomed(kSide);
  for (int i = 0; i < kPixels; ++i) image[i] = static_cast<float>(i % kSide);
  const ClippedZoom zoom(kSide, 2);  // 16 pixels onto 32, corners on corners
  EXPECT_EQ(zoom.crop_begin(), 8);
  EXPECT_EQ(zoom.crop_size(), 16);
  zoom.add_to(image, zoomed);
  for (int x = 0; x < kSide; ++x) EXPECT_NEAR(zoomed[5 * kSide + x], 8 + x * 15.0 / 31, 1e-5);
}

TEST(NormalSampler, FollowsTheNormalDistribution) {
  const NormalSampler normal;
  Random random(1, "ziggurat");
  constexpr int kDraws = 1000000;
  std::array<int, 41> below{};  // counts of draws below -4, -3.8, .. 4
  double fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = normal(random);
    fourth += x * x * x * x / kDraws;
    for (int k = 0; k < 41; ++k) below[k] += x < -4 + 0.2 * k;
  }
  for (int k = 0; k < 41; ++k) {
    const double expected = 0.5 * std::erfc(-(-4 + 0.2 * k) / std::sqrt(2.0));
    const double deviation = std::sqrt(expected * (1 - expected) / kDraws);
    EXPECT_NEAR(below[k] / static_cast<double>(kDraws), expected, 4.5 * deviation) << k;
  }
  EXPECT_NEAR(fourth, 3, 0.05);
}

/// Lines of 1024 numbers; see the order where they are read.
std::vector<std::vector<int>> read_stages() {
  std::ifstream file(GALA_TEST_GOLDEN_DIR "/opencv_stages.csv");
  std::vector<std::vector<int>> stages;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    stages.emplace_back();
    for (std::string word; std::getline(words, word, ',');)
      stages.back().push_back(std::stoi(word));
  }
  return stages;
}

TEST(WaterStages, EqualOpenCv) {
  const auto stages = read_stages();
  ASSERT_EQ(stages.size(), 10u);
  auto as_ints = [](const Levels& levels) {
    return std::vector<int>(levels.begin(), levels.end());
  };
  for (std::size_t first : {0, 5}) {
    Levels depth(kSide);
    std::copy(stages[first].begin(), stages[first].end(), depth.begin());
    const Levels edges = find_edges(depth, 50, 150);
    EXPECT_EQ(as_ints(edges), stages[first + 1]);
    Plane distance(kSide);
    distance_to_edges(edges, distance);
    for (int i = 0; i < kPixels; ++i) {
      EXPECT_NEAR(distance[i] * 65536, stages[first + 2][static_cast<std::size_t>(i)], 4);
    }
    for (float& value : distance) value = std::min(value, 20.0f);
    const Levels light = equalise(cut_to_levels(box_blur(distance)));
    EXPECT_EQ(as_ints(light), stages[first + 3]);
    EXPECT_EQ(as_ints(round_to_levels(box_blur(emboss(light)))), stages[first + 4]);
  }
}

TEST(FindEdges, FindsNothingOnAFlatImage) {
  Levels flat(kSide);
  std::fill(flat.begin(), flat.end(), std::uint8_t{90});
  EXPECT_EQ(find_edges(flat, 50, 150), Levels(kSide));
  Plane distance(kSide);
  distance_to_edges(Levels(kSide), distance);
  EXPECT_GT(*std::min_element(distance.begin(), distance.end()), 20);
}

}  // namespace
}  // namespace gala::test
