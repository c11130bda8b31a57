// Changes of colour: brightness and saturation in HSV, contrast around each channel's mean.
#include <array>
#include <cmath>

#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// Hue, saturation and value, each in [0, 1]. Double, since many results are whole levels up to the
/// last bit, and whether they are cut down or not is part of the published data.
struct Hsv {
  double hue = 0, saturation = 0, value = 0;
};

Hsv to_hsv(const std::uint8_t* pixel) {
  const double red = pixel[0] / 255.0, green = pixel[1] / 255.0, blue = pixel[2] / 255.0;
  Hsv hsv;
  hsv.value = std::max({red, green, blue});
  const double range = hsv.value - std::min({red, green, blue});
  if (range == 0) return hsv;
  hsv.saturation = range / hsv.value;
  // Sixths of the circle; where two channels are the largest, the later one decides.
  double sixths = blue == hsv.value    ? 4 + (red - green) / range
                  : green == hsv.value ? 2 + (blue - red) / range
                                       : (green - blue) / range;
  hsv.hue = sixths / 6;
  if (hsv.hue < 0) hsv.hue += 1;
  return hsv;
}

void from_hsv(const Hsv& hsv, std::uint8_t* pixel) {
  const double sixths = hsv.hue * 6;
  const int sector = static_cast<int>(sixths);
  const double part = sixths - sector;
  const double value = hsv.value;
  const double low = value * (1 - hsv.saturation);
  const double falling = value * (1 - part * hsv.saturation);
  const double rising = value * (1 - (1 - part) * hsv.saturation);
  std::array<double, 3> rgb;
  switch (sector) {
    case 1:
      rgb = {falling, value, low};
      break;
    case 2:
      rgb = {low, value, rising};
      break;
    case 3:
      rgb = {low, falling, value};
      break;
    case 4:
      rgb = {rising, low, value};
      break;
    case 5:
      rgb = {value, low, falling};
      break;
    default:
      rgb = {value, rising, low};
      break;
  }
  for (int c = 0; c < 3; ++c) pixel[c] = static_cast<std::uint8_t>(rgb[c] * 255);
}

class Brightness final : public CorruptionEffect {
 public:
  Brightness(int side, double added) : values_(3 * side * side), added_(added) {}
  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    for (int i = 0; i < values_; i += 3) {
      Hsv hsv = to_hsv(&input[i]);
      hsv.value = std::min(hsv.value + added_, 1.0);
      from_hsv(hsv, &output[i]);
    }
  }

 private:
  int values_;
  double added_;
};

class Saturate final : public CorruptionEffect {
 public:
  Saturate(int side, double factor, double added)
      : values_(3 * side * side), factor_(factor), added_(added) {}
  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    for (int i = 0; i < values_; i += 3) {
      Hsv hsv = to_hsv(&input[i]);
      hsv.saturation = std::min(hsv.saturation * factor_ + added_, 1.0);
      from_hsv(hsv, &output[i]);
    }
  }

 private:
  int values_;
  double factor_, added_;
};

class Contrast final : public CorruptionEffect {
 public:
  Contrast(int side, double factor) : pixels_(side * side), factor_(static_cast<float>(factor)) {}
  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    std::array<int, 3> sums{};
    for (int i = 0; i < pixels_; ++i) {
      for (int c = 0; c < 3; ++c) sums[c] += input[3 * i + c];
    }
    std::array<float, 3> offset;
    for (int c = 0; c < 3; ++c) {
      offset[c] = static_cast<float>(sums[c]) / static_cast<float>(pixels_) * (1 - factor_);
    }
    for (int i = 0; i < pixels_; ++i) {
      for (int c = 0; c < 3; ++c) {
        output[3 * i + c] = to_level(input[3 * i + c] * factor_ + offset[c]);
      }
    }
  }

 private:
  int pixels_;
  float factor_;
};

}  // namespace

EffectPointer make_brightness(CorruptionSet set, int severity) {
  constexpr double kAdded[][kSeverities] = {{0.05, 0.1, 0.15, 0.2, 0.3}, {0.1, 0.2, 0.3, 0.4, 0.5}};
  return std::make_unique<Brightness>(side_of(set), constant_of(kAdded, set, severity));
}

EffectPointer make_saturate(CorruptionSet set, int severity) {
  constexpr double kFactor[][kSeverities] = {{0.3, 0.1, 1.5, 2, 2.5}, {0.3, 0.1, 2, 5, 20}};
  constexpr double kAdded[][kSeverities] = {{0, 0, 0, 0.1, 0.2}, {0, 0, 0, 0.1, 0.2}};
  return std::make_unique<Saturate>(side_of(set), constant_of(kFactor, set, severity),
                                    constant_of(kAdded, set, severity));
}

EffectPointer make_contrast(CorruptionSet set, int severity) {
  constexpr double kFactor[][kSeverities] = {{0.75, 0.5, 0.4, 0.3, 0.15},
                                             {0.4, 0.3, 0.2, 0.1, 0.05}};
  return std::make_unique<Contrast>(side_of(set), constant_of(kFactor, set, severity));
}

}  // namespace gala
