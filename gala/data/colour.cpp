// Compiled apart, without fused products, see CMakeLists.txt. The loops have no branches, so that the
// compiler makes vectors of them.
#include "gala/data/colour.h"

#include <algorithm>
#include <cstring>

#include "gala/data/clones.h"

namespace gala {
namespace {

/// ITU-R 601 luminance in 16-bit fixed point, as PIL rounds it.
inline int luminance(int red, int green, int blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

/// from + factor (to - from), cut off to a byte.
inline std::uint8_t blend(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(static_cast<int>(std::min(std::max(value, 0.0F), 255.0F)));
}

/// The nearest integer to a value that is not negative, halves upwards.
inline int rounded(float value) {
  const int whole = static_cast<int>(value);
  return whole + (value - static_cast<float>(whole) >= 0.5F);
}

GALA_CLONES void blend_all(std::uint8_t* values, std::int64_t size, int from, float factor) {
  for (std::int64_t i = 0; i < size; ++i) values[i] = blend(from, values[i], factor);
}

GALA_CLONES std::int64_t sum_luminance(const std::uint8_t* planes, std::int64_t size) {
  const std::uint8_t *red = planes, *green = planes + size, *blue = planes + 2 * size;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += luminance(red[i], green[i], blue[i]);
  return sum;
}

GALA_CLONES void blend_with_grey(std::uint8_t* planes, std::int64_t size, float factor) {
  std::uint8_t *red = planes, *green = planes + size, *blue = planes + 2 * size;
  for (std::int64_t i = 0; i < size; ++i) {
    const int grey = luminance(red[i], green[i], blue[i]);
    red[i] = blend(grey, red[i], factor);
    green[i] = blend(grey, green[i], factor);
    blue[i] = blend(grey, blue[i], factor);
  }
}

/// Pixels that go through `turn_hue` together.
constexpr int kTogether = 64;

/// To hue, saturation and value as bytes, on by `shift` bytes of hue, and back. In steps of one width
/// of number each.
GALA_CLONES void turn_hue(std::uint8_t* planes, std::int64_t size, int shift) {
  for (std::int64_t begin = 0; begin < size; begin += kTogether) {
    std::uint8_t* const channels[3] = {planes + begin, planes + size + begin,
                                       planes + 2 * size + begin};
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kTogether, size - begin));
    std::uint8_t bytes[3][kTogether] = {};
    for (int c = 0; c < 3; ++c) std::memcpy(bytes[c], channels[c], count);

    int red[kTogether], green[kTogether], blue[kTogether];
    for (int i = 0; i < kTogether; ++i) red[i] = bytes[0][i];
    for (int i = 0; i < kTogether; ++i) green[i] = bytes[1][i];
    for (int i = 0; i < kTogether; ++i) blue[i] = bytes[2][i];

    int value[kTogether], hue[kTogether], saturation[kTogether];
    float after[kTogether], plus[kTogether], minus[kTogether], shares[kTogether];
    for (int i = 0; i < kTogether; ++i) {
      const int r = red[i], g = green[i], b = blue[i];
      const int most = std::max(std::max(r, g), b), least = std::min(std::min(r, g), b);
      const auto range = static_cast<float>(most - least);
      // How far the channels lie below the largest, as shares of the range; of grey, nothing.
      const float divisor = std::max(range, 1.0F);
      const float below_r = static_cast<float>(most - r) / divisor;
      const float below_g = static_cast<float>(most - g) / divisor;
      const float below_b = static_cast<float>(most - b) / divisor;
      // In sixths of the circle: after red, green or blue, a little on or back.
      const bool is_red = r == most, is_green = g == most;
      after[i] = is_red ? 0.0F : is_green ? 2.0F : 4.0F;
      plus[i] = is_red ? below_b : is_green ? below_r : below_g;
      minus[i] = is_red ? below_g : is_green ? below_b : below_r;
      value[i] = most;
      shares[i] = range / std::max(static_cast<float>(most), 1.0F);
    }
    for (int i = 0; i < kTogether; ++i) {
      const auto sixths = static_cast<float>(static_cast<double>(after[i]) + plus[i] - minus[i]);
      // What fmod(.., 1) gives, without a call: the sum lies in 5/6 .. 11/6.
      const double turned = sixths / 6.0 + 1.0;
      const auto circle = static_cast<float>(turned - (turned >= 1 ? 1.0 : 0.0));
      hue[i] = (static_cast<int>(circle * 255.0) + shift) & 255;
      saturation[i] = static_cast<int>(shares[i] * 255.0);
    }
    for (int i = 0; i < kTogether; ++i) {
      const float sector = static_cast<float>(hue[i]) * 6.0F / 255.0F;
      const auto begun = static_cast<float>(static_cast<int>(sector));
      const float rest = sector - begun;
      const float sixth = begun == 6 ? 0 : begun;
      const float depth = static_cast<float>(saturation[i]) / 255.0F;
      const int most = value[i];
      const auto scale = static_cast<float>(most);
      const int falling = rounded(scale * (1 - depth * rest));
      const int rising = rounded(scale * (1 - depth * (1 - rest)));
      const int least = rounded(scale * (1 - depth));
      // A channel rises in one sixth of the circle, is at its most in the next two, and falls.
      const auto channel = [&](float rises, float full, float still_full, float falls) {
        int level = sixth == rises ? rising : least;
        level = sixth == full ? most : level;
        level = sixth == still_full ? most : level;
        return sixth == falls ? falling : level;
      };
      red[i] = channel(4, 5, 0, 1);
      green[i] = channel(0, 1, 2, 3);
      blue[i] = channel(2, 3, 4, 5);
    }
    for (int i = 0; i < kTogether; ++i) bytes[0][i] = static_cast<std::uint8_t>(red[i]);
    for (int i = 0; i < kTogether; ++i) bytes[1][i] = static_cast<std::uint8_t>(green[i]);
    for (int i = 0; i < kTogether; ++i) bytes[2][i] = static_cast<std::uint8_t>(blue[i]);
    for (int c = 0; c < 3; ++c) std::memcpy(channels[c], bytes[c], count);
  }
}

std::int64_t plane_size(std::span<const std::uint8_t> planes) {
  return static_cast<std::int64_t>(planes.size() / 3);
}

}  // namespace

void adjust_brightness(std::span<std::uint8_t> planes, double factor) {
  blend_all(planes.data(), static_cast<std::int64_t>(planes.size()), 0, static_cast<float>(factor));
}

void adjust_contrast(std::span<std::uint8_t> planes, double factor) {
  const std::int64_t size = plane_size(planes);
  if (size == 0) return;
  const std::int64_t sum = sum_luminance(planes.data(), size);
  const auto mean = static_cast<int>(static_cast<double>(sum) / static_cast<double>(size) + 0.5);
  blend_all(planes.data(), 3 * size, mean, static_cast<float>(factor));
}

void adjust_saturation(std::span<std::uint8_t> planes, double factor) {
  blend_with_grey(planes.data(), plane_size(planes), static_cast<float>(factor));
}

void adjust_hue(std::span<std::uint8_t> planes, double turn) {
  turn_hue(planes.data(), plane_size(planes), static_cast<int>(turn * 255));
}

void make_grey(std::span<std::uint8_t> planes) {
  const std::int64_t size = plane_size(planes);
  std::uint8_t *red = planes.data(), *green = red + size, *blue = green + size;
  for (std::int64_t i = 0; i < size; ++i) {
    red[i] = static_cast<std::uint8_t>(luminance(red[i], green[i], blue[i]));
  }
  std::copy_n(red, size, green);
  std::copy_n(red, size, blue);
}

}  // namespace gala
