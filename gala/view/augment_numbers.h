#pragma once
// What the loops of `augment` over pixels read, on the host and on a device. C++17, since nvcc compiles
// it too.
#include <cstdint>

namespace gala {

/// Changes of colour.
enum ColourTurn : std::int32_t { kBrightness, kContrast, kSaturation, kHue, kGamma };
constexpr int kColourTurns = 5;

/// The drawn numbers of a look.
struct AugmentNumbers {
  ColourTurn order[kColourTurns];
  std::int32_t flip;
  float brightness, contrast, saturation, gamma;
  float hue;               ///< sixths of a turn
  float cosine, sine;      ///< of the angle, over the scale
  float shift_x, shift_y;  ///< of the padded sides, before they are rounded to whole pixels
  float blur[3];           ///< weights at a distance of 0, 1 and 2 pixels
  std::uint32_t noise_seed[2];
};

/// What does not change from draw to draw. Fewer than 2^31 numbers in all.
struct AugmentTask {
  std::int32_t images, height, width;
  /// Between the numbers of a pixel, and between pixels.
  std::int32_t channel_step, pixel_step;
  std::int32_t channel[3];  ///< where red, green and blue lie
  float mean[3], std[3];    ///< of red, green and blue
  bool reflect;             ///< how the picture goes on outside; else its edge does
  bool blur;
  float noise;
};

}  // namespace gala
