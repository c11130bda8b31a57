#pragma once
#include <cstdint>
#include <memory>

#include "gala/base/random.h"
#include "gala/data/corruption/corruption.h"

namespace gala {

/// One corruption with the constants of one severity; tables and kernels are made by its
/// constructor, so that `apply` only works on the image. Bytes are 32x32 RGB, interleaved.
class CorruptionEffect {
 public:
  virtual ~CorruptionEffect() = default;
  virtual void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const = 0;
};

using EffectPointer = std::unique_ptr<const CorruptionEffect>;

// One function a corruption; severity is 1 .. 5.
EffectPointer make_gaussian_noise(int severity);
EffectPointer make_shot_noise(int severity);
EffectPointer make_impulse_noise(int severity);
EffectPointer make_speckle_noise(int severity);
EffectPointer make_gaussian_blur(int severity);
EffectPointer make_defocus_blur(int severity);
EffectPointer make_glass_blur(int severity);
EffectPointer make_motion_blur(int severity);
EffectPointer make_zoom_blur(int severity);
EffectPointer make_snow(int severity);
EffectPointer make_frost(int severity, std::shared_ptr<const FrostTextures> textures);
EffectPointer make_fog(int severity);
EffectPointer make_brightness(int severity);
EffectPointer make_contrast(int severity);
EffectPointer make_saturate(int severity);
EffectPointer make_elastic_transform(int severity);
EffectPointer make_pixelate(int severity);
EffectPointer make_jpeg_compression(int severity);
EffectPointer make_spatter(int severity);

}  // namespace gala
