#pragma once
#include <cstdint>

#include "gala/base/random.h"

namespace gala {

/// How many chains of changes `augmix` mixes, and of how many changes one is at most.
inline constexpr int kAugmixChains = 3, kAugmixDeepest = 3;

/// One change of a picture. Every change is written as a map of its places, and then of its levels; what is not
/// asked for leaves them as they are.
struct AugmixChange {
  /// The map of places: x' = cosine x + skew_x y + ..., y' = skew_y x + cosine y + ... With `turn` = 1 it is about the
  /// middle of the picture. A shift is `shift` times a side / 30, in whole pixels towards zero, by its own sign.
  double cosine = 1, skew_x = 0, skew_y = 0, turn = 0, shift_x = 0, shift_y = 0;
  double stretch = 0, equalize = 0;  ///< 1: the levels of each channel by its own histogram
  double threshold = 256;            ///< levels from here on are inverted
  double coarse = 1;                 ///< levels in whole steps of this
};

/// What `augmix` draws for a look, the same for every image of a batch. Nothing but doubles, so that a device can
/// have it as a row of numbers.
struct AugmixDraw {
  double crop_x = 0.5, crop_y = 0.5;  ///< of the room for cropping, 0 to 1
  double flip = 0;
  double kept = 1;  ///< share of the picture itself
  double weights[kAugmixChains] = {1, 0, 0};
  AugmixChange changes[kAugmixChains][kAugmixDeepest];
};
constexpr std::int64_t kAugmixNumbers = sizeof(AugmixDraw) / sizeof(double);

/// Draws as MEMO's published code does, for changes of `severity`.
AugmixDraw draw_augmix(Random& random, double severity);

}  // namespace gala
