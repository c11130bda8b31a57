#pragma once
// The arithmetic of `augment` on one pixel or one place, for the loops of the host and the kernels of a
// device alike. Logarithm, power and sine are written out: so the host makes many at once, and both sides
// give the same bits. C++17, since nvcc compiles it too.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "gala/base/compiler.h"
#include "gala/view/augment_numbers.h"
#include "gala/view/counter_random.h"

namespace gala {

/// A pixel, 0 to 1.
struct Rgb {
  float red, green, blue;
};

/// Into 0 .. 1. What is no number stays none.
GALA_ON_BOTH GALA_INLINE float clipped(float value) {
  value = value < 0 ? 0 : value;
  return value > 1 ? 1 : value;
}

GALA_ON_BOTH GALA_INLINE float grey_of(const Rgb& pixel) {
  return 0.2989F * pixel.red + 0.587F * pixel.green + 0.114F * pixel.blue;
}

/// factor · a + (1 - factor) · b.
GALA_ON_BOTH GALA_INLINE float blended(float a, float b, float factor) {
  return clipped(factor * a + (1 - factor) * b);
}

/// As far from `grey` as the factor says.
GALA_ON_BOTH GALA_INLINE Rgb blended(const Rgb& pixel, float grey, float factor) {
  return {blended(pixel.red, grey, factor), blended(pixel.green, grey, factor),
          blended(pixel.blue, grey, factor)};
}

/// The hue goes on by sixths of a whole turn, -3 to 3.
GALA_ON_BOTH GALA_INLINE Rgb with_hue(const Rgb& pixel, float sixths) {
  const auto [red, green, blue] = pixel;
  const float larger = red > green ? red : green, smaller = red > green ? green : red;
  const float most = larger > blue ? larger : blue, least = smaller < blue ? smaller : blue;
  const float chroma = most - least;
  const float divisor = chroma == 0 ? 1 : chroma;
  const float from_red = (green - blue) / divisor;
  const float from_green = 2 + (blue - red) / divisor;
  const float from_blue = 4 + (red - green) / divisor;
  float hue = (most == red ? from_red : most == green ? from_green : from_blue) + sixths;
  hue = hue < 0 ? hue + 6 : hue;
  hue = hue >= 6 ? hue - 6 : hue;
  // How much of the chroma each colour has, along the cone of HSV.
  const float of_red = clipped(fabsf(hue - 3) - 1), of_green = clipped(2 - fabsf(hue - 2)),
              of_blue = clipped(2 - fabsf(hue - 4));
  return {clipped(most - chroma * (1 - of_red)), clipped(most - chroma * (1 - of_green)),
          clipped(most - chroma * (1 - of_blue))};
}

GALA_ON_BOTH GALA_INLINE std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

GALA_ON_BOTH GALA_INLINE float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// ln x of a normal number above 0, to about 1e-7 of it: x = 2^e m with m around 1, and
/// ln m = 2 artanh((m - 1) / (m + 1)) as a series.
GALA_ON_BOTH GALA_INLINE float natural_log(float x) {
  constexpr std::uint32_t kRootOfHalf = 0x3f3504f3;
  const auto exponent = static_cast<std::int32_t>(bits_of(x) - kRootOfHalf) >> 23;
  const float m = float_of(bits_of(x) - (static_cast<std::uint32_t>(exponent) << 23));
  const float s = (m - 1) / (m + 1), square = s * s;
  const float series =
      1 + square * (1.0F / 3 + square * (1.0F / 5 + square * (1.0F / 7 + square * (1.0F / 9))));
  return static_cast<float>(exponent) * 0.693147181F + 2 * s * series;
}

/// e^x for |x| < 80, to about 1e-7 of it beside the error of x.
GALA_ON_BOTH GALA_INLINE float natural_power(float x) {
  constexpr float kRounder = 12582912;  // 1.5 · 2^23: adding it leaves whole numbers
  const float rounded = (x * 1.44269504F + kRounder) - kRounder;
  const float rest = (x - rounded * 0.693359375F) + rounded * 2.12194440e-4F;  // ln 2 in two parts
  float sum = 1.0F / 5040;
  sum = sum * rest + 1.0F / 720;
  sum = sum * rest + 1.0F / 120;
  sum = sum * rest + 1.0F / 24;
  sum = sum * rest + 1.0F / 6;
  sum = sum * rest + 0.5F;
  sum = sum * rest + 1;
  sum = sum * rest + 1;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(rounded));
  return sum * float_of((exponent + 127) << 23);
}

/// Of a value of at least 1e-8, as the published code has it.
GALA_ON_BOTH GALA_INLINE float with_gamma(float value, float gamma) {
  const float above = value > 1e-8F ? clipped(value) : 1e-8F;
  const float power = clipped(natural_power(gamma * natural_log(above)));
  return value == value ? power : value;
}

/// What a turn makes of a pixel. `mean_grey` is the image's before the contrast changes.
GALA_ON_BOTH GALA_INLINE Rgb turned(const Rgb& pixel, ColourTurn turn, const AugmentNumbers& drawn,
                                    float mean_grey) {
  switch (turn) {
    case kBrightness:
      return blended(pixel, 0, drawn.brightness);
    case kContrast:
      return blended(pixel, mean_grey, drawn.contrast);
    case kSaturation:
      return blended(pixel, grey_of(pixel), drawn.saturation);
    case kHue:
      return with_hue(pixel, drawn.hue);
    case kGamma:
      return {with_gamma(pixel.red, drawn.gamma), with_gamma(pixel.green, drawn.gamma),
              with_gamma(pixel.blue, drawn.gamma)};
  }
  return pixel;
}

/// The four pixels that a place of the result is made from, and how much of each.
struct Taps {
  std::int32_t pixel[4];  ///< row · width + column
  float weight[4];
};

/// A position beside 0 .. size-1 mirrored back into it; the border is not repeated.
GALA_ON_BOTH GALA_INLINE std::int32_t mirrored(std::int32_t at, std::int32_t size) {
  if (size == 1) return 0;
  at = at < 0 ? -at : at;
  return at >= size ? 2 * (size - 1) - at : at;
}

/// One axis of a place: two neighbours and their weights. The picture goes on for half its size on
/// either side, and what lies beyond that counts nothing.
struct AxisTaps {
  std::int32_t at[2];
  float weight[2];

  GALA_ON_BOTH AxisTaps(float place, std::int32_t size, bool reflect) {
    const float below = floorf(place);
    const std::int32_t pad = size / 2;
    for (int i = 0; i < 2; ++i) {
      const std::int32_t from = static_cast<std::int32_t>(below) + i;
      const bool inside = from >= -pad && from < size + pad;
      const std::int32_t last = size - 1;
      const std::int32_t held = from < 0 ? 0 : from > last ? last : from;
      at[i] = inside && reflect ? mirrored(from, size) : held;
      weight[i] = inside ? (i == 0 ? below + 1 - place : place - below) : 0;
    }
  }
};

/// Where the result's pixel (row, column) comes from; both may lie up to two pixels outside, for the blur.
/// The place goes back through flip, crop and affine map to the padded picture, and from there to the
/// picture itself. A place that the frame of the padded picture cuts is dimmed once more, as
/// torchvision's fill does.
GALA_ON_BOTH inline Taps taps_at(const AugmentTask& task, const AugmentNumbers& drawn,
                                 std::int32_t row, std::int32_t column) {
  const std::int32_t pad_y = task.height / 2, pad_x = task.width / 2;
  const std::int32_t full_y = task.height + 2 * pad_y, full_x = task.width + 2 * pad_x;
  if (drawn.flip) column = task.width - 1 - column;
  row = mirrored(row + pad_y, full_y) - pad_y;
  column = mirrored(column + pad_x, full_x) - pad_x;
  const float middle_y = static_cast<float>(task.height - 1) / 2;
  const float middle_x = static_cast<float>(task.width - 1) / 2;
  const float y =
      static_cast<float>(row) - middle_y - rintf(drawn.shift_y * static_cast<float>(full_y));
  const float x =
      static_cast<float>(column) - middle_x - rintf(drawn.shift_x * static_cast<float>(full_x));
  const AxisTaps across(drawn.cosine * x + drawn.sine * y + middle_x, task.width, task.reflect);
  const AxisTaps down(drawn.cosine * y - drawn.sine * x + middle_y, task.height, task.reflect);
  const float inside = (down.weight[0] + down.weight[1]) * (across.weight[0] + across.weight[1]);
  Taps taps;
  for (int i = 0; i < 4; ++i) {
    taps.pixel[i] = down.at[i / 2] * task.width + across.at[i % 2];
    taps.weight[i] = down.weight[i / 2] * across.weight[i % 2] * inside;
  }
  return taps;
}

/// One direction of the blur: five neighbours.
GALA_ON_BOTH GALA_INLINE float blurred(const float (&weight)[3], float a, float b, float c, float d,
                                       float e) {
  return weight[0] * c + weight[1] * (b + d) + weight[2] * (a + e);
}

/// Two standard normal numbers from two words, by Box and Muller: a length, and one of four directions
/// with an angle of up to an eighth of a turn beside it.
GALA_ON_BOTH GALA_INLINE void make_normals(std::uint32_t first, std::uint32_t second, float& x,
                                           float& y) {
  const float uniform =
      (static_cast<float>(static_cast<std::int32_t>(first >> 9)) + 0.5F) * (1.0F / 8388608);
  const float length = sqrtf(-2 * natural_log(uniform));
  const float part = static_cast<float>(static_cast<std::int32_t>(second >> 10));  // 22 bits
  const float angle = (part + 0.5F) * (1.57079633F / 4194304) - 0.785398163F,
              square = angle * angle;
  const float sine =
      angle *
      (1 + square * (-1.0F / 6 +
                     square * (1.0F / 120 + square * (-1.0F / 5040 + square * (1.0F / 362880)))));
  const float cosine =
      1 +
      square * (-0.5F + square * (1.0F / 24 + square * (-1.0F / 720 + square * (1.0F / 40320))));
  const float sign = (second & 1) != 0 ? -length : length;
  const bool swap = (second & 2) != 0;
  x = sign * (swap ? sine : cosine);
  y = sign * (swap ? cosine : sine);
}

/// The noise of the batch's `index`-th pixel, with deviation 1.
GALA_ON_BOTH GALA_INLINE Rgb noise_at(const AugmentNumbers& drawn, std::uint32_t index) {
  std::uint32_t words[4];
  for (std::uint32_t i = 0; i < 4; ++i) words[i] = counted_word(drawn.noise_seed, 4 * index + i);
  Rgb noise;
  float spare;
  make_normals(words[0], words[1], noise.red, noise.green);
  make_normals(words[2], words[3], noise.blue, spare);
  return noise;
}

}  // namespace gala
