#pragma once
#include <cstdint>
#include <memory>

#include "gala/base/random.h"
#include "gala/data/corruption/corruption.h"

namespace gala {

/// One corruption with the constants of one severity; tables and kernels are made by its
/// constructor, so that `apply` only works on the image. Bytes are RGB of the set's size, interleaved.
class CorruptionEffect {
 public:
  virtual ~CorruptionEffect() = default;
  virtual void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const = 0;
};

using EffectPointer = std::unique_ptr<const CorruptionEffect>;

/// The constant of a severity in a table with a line for each set.
template <class Value>
constexpr const Value& constant_of(const Value (&table)[2][kSeverities], CorruptionSet set,
                                   int severity) {
  return table[static_cast<std::size_t>(set)][severity - 1];
}

inline int side_of(CorruptionSet set) {
  return static_cast<int>(corruption_side(set));
}

// One function a corruption; severity is 1 .. 5.
EffectPointer make_gaussian_noise(CorruptionSet set, int severity);
EffectPointer make_shot_noise(CorruptionSet set, int severity);
EffectPointer make_impulse_noise(CorruptionSet set, int severity);
EffectPointer make_speckle_noise(CorruptionSet set, int severity);
EffectPointer make_gaussian_blur(CorruptionSet set, int severity);
EffectPointer make_defocus_blur(CorruptionSet set, int severity);
EffectPointer make_glass_blur(CorruptionSet set, int severity);
EffectPointer make_motion_blur(CorruptionSet set, int severity);
EffectPointer make_zoom_blur(CorruptionSet set, int severity);
EffectPointer make_snow(CorruptionSet set, int severity);
EffectPointer make_frost(CorruptionSet set, int severity,
                         std::shared_ptr<const FrostTextures> textures);
EffectPointer make_fog(CorruptionSet set, int severity);
EffectPointer make_brightness(CorruptionSet set, int severity);
EffectPointer make_contrast(CorruptionSet set, int severity);
EffectPointer make_saturate(CorruptionSet set, int severity);
EffectPointer make_elastic_transform(CorruptionSet set, int severity);
EffectPointer make_pixelate(CorruptionSet set, int severity);
EffectPointer make_jpeg_compression(CorruptionSet set, int severity);
EffectPointer make_spatter(CorruptionSet set, int severity);

}  // namespace gala
