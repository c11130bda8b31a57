#include "gala/data/corruption/corruption.h"

#include "gala/base/error.h"
#include "gala/base/spec.h"
#include "gala/data/corruption/effect.h"

namespace gala {
namespace {

EffectPointer make_effect(Corruption corruption, int severity,
                          std::shared_ptr<const FrostTextures> textures) {
  switch (corruption) {
    case Corruption::kGaussianNoise:
      return make_gaussian_noise(severity);
    case Corruption::kShotNoise:
      return make_shot_noise(severity);
    case Corruption::kImpulseNoise:
      return make_impulse_noise(severity);
    case Corruption::kDefocusBlur:
      return make_defocus_blur(severity);
    case Corruption::kGlassBlur:
      return make_glass_blur(severity);
    case Corruption::kMotionBlur:
      return make_motion_blur(severity);
    case Corruption::kZoomBlur:
      return make_zoom_blur(severity);
    case Corruption::kSnow:
      return make_snow(severity);
    case Corruption::kFrost:
      return make_frost(severity, textures ? std::move(textures) : FrostTextures::procedural());
    case Corruption::kFog:
      return make_fog(severity);
    case Corruption::kBrightness:
      return make_brightness(severity);
    case Corruption::kContrast:
      return make_contrast(severity);
    case Corruption::kElasticTransform:
      return make_elastic_transform(severity);
    case Corruption::kPixelate:
      return make_pixelate(severity);
    case Corruption::kJpegCompression:
      return make_jpeg_compression(severity);
    case Corruption::kSpeckleNoise:
      return make_speckle_noise(severity);
    case Corruption::kGaussianBlur:
      return make_gaussian_blur(severity);
    case Corruption::kSpatter:
      return make_spatter(severity);
    case Corruption::kSaturate:
      return make_saturate(severity);
  }
  fail<ConfigError>("there is no corruption number {}", static_cast<int>(corruption));
}

}  // namespace

std::string_view corruption_name(Corruption corruption) {
  return enum_names(corruption)[static_cast<std::size_t>(corruption)];
}

Corruption parse_corruption(std::string_view name) {
  const auto names = enum_names(Corruption{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Corruption>(i);
  }
  fail<ConfigError>("there is no corruption \"{}\"{}", name,
                    suggestion(name, {names.begin(), names.end()}));
}

void require_corruptible(std::int64_t height, std::int64_t width) {
  if (height == kCorruptionSide && width == kCorruptionSide) return;
  fail<ConfigError>(
      "images of {}x{} pixels cannot be corrupted: the published constants are for {}x{}", height,
      width, kCorruptionSide, kCorruptionSide);
}

Corruptor::Corruptor(Corruption corruption, int severity, std::uint64_t seed,
                     std::shared_ptr<const FrostTextures> textures)
    : corruption_(corruption), severity_(severity), seed_(seed) {
  if (severity < 1 || severity > kSeverities) {
    fail<ConfigError>("corruption {}: severity cannot be {} (expected 1 to {})",
                      corruption_name(corruption), severity, kSeverities);
  }
  effect_ = make_effect(corruption, severity, std::move(textures));
}

Corruptor::~Corruptor() = default;
Corruptor::Corruptor(Corruptor&&) noexcept = default;
Corruptor& Corruptor::operator=(Corruptor&&) noexcept = default;

void Corruptor::apply(std::int64_t image_index, std::span<const std::uint8_t> input,
                      std::span<std::uint8_t> output) const {
  if (input.size() != kCorruptionBytes || output.size() != kCorruptionBytes) {
    fail<ConfigError>("corruption {}: an image of {} bytes into {} bytes (expected {} = 32x32 RGB)",
                      corruption_name(corruption_), input.size(), output.size(), kCorruptionBytes);
  }
  Random random(seed_, "corruption",
                {static_cast<std::uint64_t>(corruption_), static_cast<std::uint64_t>(severity_),
                 static_cast<std::uint64_t>(image_index)});
  effect_->apply(random, input.data(), output.data());
}

}  // namespace gala
