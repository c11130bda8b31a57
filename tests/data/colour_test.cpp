#include "gala/data/colour.h"

#include <algorithm>
#include <vector>

#include "gala/data/npy.h"
#include "support.h"

namespace gala {
namespace {

using Planes = std::vector<std::uint8_t>;
using Change = void (*)(std::span<std::uint8_t>, double);

/// A file of interleaved pixels.
Planes planes_of(const std::string& name) {
  const NpyArray array = read_npy(test::fixture(name));
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(array.data.data());
  const std::size_t size = array.data.size() / 3;
  Planes planes(3 * size);
  for (std::size_t i = 0; i < 3 * size; ++i) planes[i % 3 * size + i / 3] = pixels[i];
  return planes;
}

int largest_difference(const Planes& a, const Planes& b) {
  if (a.size() != b.size()) return -1;
  int largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(Colour, ChangesAsPilDoes) {
  for (const auto& [name, change, amount] : std::vector<std::tuple<std::string, Change, double>>{
           {"brightness_0.7", adjust_brightness, 0.7},
           {"brightness_1.3", adjust_brightness, 1.3},
           {"contrast_0.75", adjust_contrast, 0.75},
           {"contrast_1.25", adjust_contrast, 1.25},
           {"saturation_0.7", adjust_saturation, 0.7},
           {"saturation_1.3", adjust_saturation, 1.3},
           {"hue_0.3", adjust_hue, 0.3},
           {"hue_-0.2", adjust_hue, -0.2}}) {
    Planes planes = planes_of("colour_source.npy");
    change(planes, amount);
    EXPECT_EQ(largest_difference(planes, planes_of("colour_" + name + ".npy")), 0) << name;
  }
  Planes planes = planes_of("colour_source.npy");
  make_grey(planes);
  EXPECT_EQ(largest_difference(planes, planes_of("colour_grey.npy")), 0);
}

/// PIL adds up the hue in double; in float these colours come out otherwise.
TEST(Colour, TurnsHueToPilsLastBit) {
  Planes planes = {0, 43, 80, 116, 158, 4, 155, 161, 203, 176, 85, 183, 26, 58, 74};
  adjust_hue(planes, 0.1);
  EXPECT_EQ(planes, (Planes{46, 43, 27, 58, 98, 0, 73, 161, 203, 176, 85, 183, 52, 85, 75}));
}

TEST(Colour, DoesNotDependOnHowManyPixelsThereAre) {
  const Planes source = planes_of("colour_source.npy");
  const std::size_t area = source.size() / 3;
  const auto first = [&](const Planes& planes, std::size_t count) {
    Planes part;
    for (std::size_t c = 0; c < 3; ++c) {
      part.insert(part.end(), planes.begin() + static_cast<std::ptrdiff_t>(c * area),
                  planes.begin() + static_cast<std::ptrdiff_t>(c * area + count));
    }
    return part;
  };
  for (const auto& [change, amount] : std::vector<std::pair<Change, double>>{
           {adjust_brightness, 1.2}, {adjust_saturation, 0.8}, {adjust_hue, 0.1}}) {
    Planes whole = source;
    change(whole, amount);
    for (std::size_t count = 0; count <= std::min<std::size_t>(area, 200); ++count) {
      Planes part = first(source, count);
      change(part, amount);
      ASSERT_EQ(part, first(whole, count)) << count;
    }
  }
}

TEST(Colour, LeavesGreyAlone) {
  Planes planes;
  for (int channel = 0; channel < 3; ++channel) {
    for (int level = 0; level < 256; ++level) planes.push_back(static_cast<std::uint8_t>(level));
  }
  const Planes before = planes;
  adjust_hue(planes, 0.25);
  EXPECT_EQ(planes, before);
  adjust_saturation(planes, 1.3);
  EXPECT_EQ(planes, before);
  make_grey(planes);
  EXPECT_EQ(planes, before);
}

TEST(Colour, TakesAPictureWithoutPixels) {
  Planes none;
  for (const Change change : {adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue}) {
    change(none, 0.5);
  }
  make_grey(none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace gala
