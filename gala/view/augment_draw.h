#pragma once
#include <array>
#include <cstdint>

#include "gala/base/random.h"
#include "gala/view/augment_numbers.h"

namespace gala {

/// What `augment` draws for a look, the same for every image of a batch.
struct AugmentDraw {
  /// The five changes of colour, the first one first.
  std::array<ColourTurn, kColourTurns> order = {kBrightness, kContrast, kSaturation, kHue, kGamma};
  double brightness = 1, contrast = 1, saturation = 1, gamma = 1;  ///< factors, and an exponent
  double hue = 0;                                                  ///< of a whole turn
  double angle = 0;                                                ///< degrees, clockwise
  double scale = 1;
  /// To the right and down, in sixteenths of the padded sides; rounded to whole pixels.
  double shift_x = 0, shift_y = 0;
  double sigma = 0.001;  ///< of the blur, in pixels
  bool flip = false;
  std::uint64_t noise_seed = 0;
};

/// Uniform in the published ranges, or in the softer ones that the published code has beside them.
AugmentDraw draw_augment(Random& random, bool soft);

/// The same in the form that the loops over pixels read.
AugmentNumbers numbers_of(const AugmentDraw& draw);

}  // namespace gala
