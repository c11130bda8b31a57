#include "gala/data/corruption/corruption.h"

#include "gala/base/error.h"
#include "gala/base/spec.h"
#include "gala/data/corruption/effect.h"

namespace gala {
namespace {

EffectPointer make_effect(Corruption corruption, CorruptionSet set, int severity,
                          std::shared_ptr<const FrostTextures> textures) {
  switch (corruption) {
    case Corruption::kGaussianNoise:
      return make_gaussian_noise(set, severity);
    case Corruption::kShotNoise:
      return make_shot_noise(set, severity);
    case Corruption::kImpulseNoise:
      return make_impulse_noise(set, severity);
    case Corruption::kDefocusBlur:
      return make_defocus_blur(set, severity);
    case Corruption::kGlassBlur:
      return make_glass_blur(set, severity);
    case Corruption::kMotionBlur:
      return make_motion_blur(set, severity);
    case Corruption::kZoomBlur:
      return make_zoom_blur(set, severity);
    case Corruption::kSnow:
      return make_snow(set, severity);
    case Corruption::kFrost:
      return make_frost(set, severity,
                        textures ? std::move(textures) : FrostTextures::procedural(side_of(set)));
    case Corruption::kFog:
      return make_fog(set, severity);
    case Corruption::kBrightness:
      return make_brightness(set, severity);
    case Corruption::kContrast:
      return make_contrast(set, severity);
    case Corruption::kElasticTransform:
      return make_elastic_transform(set, severity);
    case Corruption::kPixelate:
      return make_pixelate(set, severity);
    case Corruption::kJpegCompression:
      return make_jpeg_compression(set, severity);
    case Corruption::kSpeckleNoise:
      return make_speckle_noise(set, severity);
    case Corruption::kGaussianBlur:
      return make_gaussian_blur(set, severity);
    case Corruption::kSpatter:
      return make_spatter(set, severity);
    case Corruption::kSaturate:
      return make_saturate(set, severity);
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

CorruptionSet corruption_set_for(std::int64_t height, std::int64_t width) {
  for (CorruptionSet set : {CorruptionSet::kCifar, CorruptionSet::kImageNet}) {
    if (height == corruption_side(set) && width == corruption_side(set)) return set;
  }
  fail<ConfigError>(
      "images of {}x{} pixels cannot be corrupted: the published constants are for 32x32 (CIFAR) "
      "and "
      "224x224 (ImageNet)",
      height, width);
}

Corruptor::Corruptor(Corruption corruption, int severity, std::uint64_t seed,
                     std::shared_ptr<const FrostTextures> textures, CorruptionSet set)
    : corruption_(corruption), severity_(severity), seed_(seed), set_(set) {
  if (severity < 1 || severity > kSeverities) {
    fail<ConfigError>("corruption {}: severity cannot be {} (expected 1 to {})",
                      corruption_name(corruption), severity, kSeverities);
  }
  effect_ = make_effect(corruption, set, severity, std::move(textures));
}

Corruptor::~Corruptor() = default;
Corruptor::Corruptor(Corruptor&&) noexcept = default;
Corruptor& Corruptor::operator=(Corruptor&&) noexcept = default;

void Corruptor::apply(std::int64_t image_index, std::span<const std::uint8_t> input,
                      std::span<std::uint8_t> output) const {
  const auto bytes = static_cast<std::size_t>(corruption_bytes(set_));
  if (input.size() != bytes || output.size() != bytes) {
    fail<ConfigError>("corruption {}: an image of {} bytes into {} bytes (expected {} = {}x{} RGB)",
                      corruption_name(corruption_), input.size(), output.size(), bytes,
                      side_of(set_), side_of(set_));
  }
  Random random(seed_, "corruption",
                {static_cast<std::uint64_t>(corruption_), static_cast<std::uint64_t>(severity_),
                 static_cast<std::uint64_t>(image_index)});
  effect_->apply(random, input.data(), output.data());
}

}  // namespace gala
