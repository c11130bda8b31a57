#include "gala/data/corruption/frost_textures.h"

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"
#include "gala/base/random.h"

namespace gala {
namespace {

/// Photographs are taken for small images at a fifth of their size; so are made ones, which are drawn
/// at that size: what has n pixels there has 5 n in the large ones.
constexpr int kShrink = 5;

int scale_for(int side) {
  return side == 32 ? 1 : kShrink;
}

/// A texture before it is coloured.
struct Relief {
  explicit Relief(int times)
      : scale(times),
        height(96 * times),
        width(128 * times),
        values(static_cast<std::size_t>(height * width)) {}
  double& at(int y, int x) { return values[static_cast<std::size_t>(y * width + x)]; }
  int scale, height, width;
  std::vector<double> values;
};

/// Adds smooth noise with bumps of about `cell` pixels.
void add_smooth_noise(Random& random, int cell, double strength, Relief& relief) {
  const int rows = relief.height / cell + 2, columns = relief.width / cell + 2;
  std::vector<double> lattice(static_cast<std::size_t>(rows * columns));
  for (double& value : lattice) value = random.normal();
  auto ease = [](double t) { return t * t * (3 - 2 * t); };
  for (int y = 0; y < relief.height; ++y) {
    const int row = y / cell;
    const double fy = ease(static_cast<double>(y % cell) / cell);
    for (int x = 0; x < relief.width; ++x) {
      const int column = x / cell;
      const double fx = ease(static_cast<double>(x % cell) / cell);
      const double* upper = &lattice[static_cast<std::size_t>(row * columns + column)];
      const double* lower = upper + columns;
      const double value = (1 - fy) * ((1 - fx) * upper[0] + fx * upper[1]) +
                           fy * ((1 - fx) * lower[0] + fx * lower[1]);
      relief.at(y, x) += strength * value;
    }
  }
}

/// One needle of ice with side branches at 60 degrees, as water freezes.
void add_needle(Random& random, double y, double x, double angle, double length, int depth,
                double strength, Relief& relief) {
  constexpr double kSixtyDegrees = 3.14159265358979323846 / 3;
  const double gap = 2 * relief.scale;
  double next_branch = gap + gap * random.uniform();
  int side = random.below(2) ? 1 : -1;
  for (double along = 0; along < length; along += 0.7) {
    const int row = static_cast<int>(std::lround(y + along * std::sin(angle)));
    const int column = static_cast<int>(std::lround(x + along * std::cos(angle)));
    if (row < 0 || row >= relief.height || column < 0 || column >= relief.width) return;
    relief.at(row, column) += strength * (1 - along / length);
    if (depth > 0 && along > next_branch) {
      add_needle(random, row, column, angle + side * kSixtyDegrees, 0.5 * (length - along),
                 depth - 1, 0.7 * strength, relief);
      side = -side;
      next_branch = along + gap + gap * random.uniform();
    }
  }
}

/// Scales to mean 0 and deviation 1, with extremes cut off.
void normalise(std::vector<double>& relief) {
  double sum = 0, square = 0;
  for (double value : relief) sum += value, square += value * value;
  const double count = static_cast<double>(relief.size()), mean = sum / count;
  const double deviation = std::sqrt(square / count - mean * mean);
  for (double& value : relief) value = std::clamp((value - mean) / deviation, -3.0, 3.0);
}

struct Tint {
  double red, green, blue;
  double contrast;  // standard deviation in levels
  double clouds, needles, grain;
};

FrostTexture make_texture(std::uint64_t number, int scale, const Tint& tint) {
  // The textures are part of the corruption and not of a run: their seed never changes.
  Random random(0, "frost", {number});
  Relief relief(scale);
  for (int cell : {32, 16, 8, 4}) {
    add_smooth_noise(random, scale * cell, 0.6 * tint.clouds * std::sqrt(cell / 16.0), relief);
  }
  for (int i = 0; i < 60; ++i) {
    const double angle = random.uniform(0, 6.283185307179586);
    add_needle(random, random.uniform(0, relief.height), random.uniform(0, relief.width), angle,
               random.uniform(12 * scale, 40 * scale), 2, tint.needles, relief);
  }
  for (double& value : relief.values) value += tint.grain * random.normal();
  normalise(relief.values);

  FrostTexture texture{relief.height, relief.width, {}};
  for (double value : relief.values) {
    for (double mean : {tint.red, tint.green, tint.blue}) {
      texture.pixels.push_back(
          static_cast<std::uint8_t>(std::clamp(mean + tint.contrast * value, 0.0, 255.0)));
    }
  }
  return texture;
}

}  // namespace

std::shared_ptr<const FrostTextures> FrostTextures::procedural(int side) {
  constexpr Tint kTints[] = {{82, 147, 164, 19, 1.0, 0.7, 0.7},    // glacier
                             {199, 203, 212, 20, 0.5, 0.8, 0.8},   // rime
                             {197, 202, 211, 20, 0.6, 0.7, 0.9},   // rime
                             {143, 158, 170, 28, 0.4, 0.9, 1.0},   // window
                             {103, 114, 125, 38, 0.6, 1.0, 0.9}};  // winter night
  std::vector<FrostTexture> textures;
  for (const Tint& tint : kTints)
    textures.push_back(make_texture(textures.size(), scale_for(side), tint));
  return std::shared_ptr<const FrostTextures>(new FrostTextures(side, std::move(textures)));
}

std::shared_ptr<const FrostTextures> FrostTextures::from_photographs(
    const std::vector<FrostTexture>& photographs, int side) {
  const std::int64_t shrink = side == 32 ? kShrink : 1;
  const std::int64_t smallest = shrink * (side + 1);
  if (photographs.empty()) fail<ConfigError>("frost: there is no photograph to take crops from");
  std::vector<FrostTexture> textures;
  for (const auto& photograph : photographs) {
    const auto& [height, width, pixels] = photograph;
    if (height < smallest || width < smallest ||
        static_cast<std::int64_t>(pixels.size()) != height * width * 3) {
      fail<ConfigError>(
          "frost: a photograph of {}x{} RGB pixels with {} bytes (expected at least "
          "{}x{})",
          height, width, pixels.size(), smallest, smallest);
    }
    // Linear interpolation at exactly a fifth reads every fifth pixel, from the third on.
    FrostTexture texture{height / shrink, width / shrink, {}};
    for (std::int64_t y = 0; y < texture.height; ++y) {
      for (std::int64_t x = 0; x < texture.width; ++x) {
        const auto* pixel = &pixels[static_cast<std::size_t>(
            ((shrink * y + shrink / 2) * width + shrink * x + shrink / 2) * 3)];
        texture.pixels.insert(texture.pixels.end(), pixel, pixel + 3);
      }
    }
    textures.push_back(std::move(texture));
  }
  return std::shared_ptr<const FrostTextures>(new FrostTextures(side, std::move(textures)));
}

}  // namespace gala
