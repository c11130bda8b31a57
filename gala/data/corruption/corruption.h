#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gala/data/corruption/frost_textures.h"

namespace gala {

/// The 19 corruptions of Hendrycks & Dietterich (2019). The first 15, in this order, are the
/// benchmark; the last four are the extra ones, meant for tuning.
enum class Corruption {
  kGaussianNoise,
  kShotNoise,
  kImpulseNoise,
  kDefocusBlur,
  kGlassBlur,
  kMotionBlur,
  kZoomBlur,
  kSnow,
  kFrost,
  kFog,
  kBrightness,
  kContrast,
  kElasticTransform,
  kPixelate,
  kJpegCompression,
  kSpeckleNoise,
  kGaussianBlur,
  kSpatter,
  kSaturate,
};

/// The published names, in the order of the enum.
constexpr std::array<std::string_view, 19> enum_names(Corruption) {
  return {"gaussian_noise",
          "shot_noise",
          "impulse_noise",
          "defocus_blur",
          "glass_blur",
          "motion_blur",
          "zoom_blur",
          "snow",
          "frost",
          "fog",
          "brightness",
          "contrast",
          "elastic_transform",
          "pixelate",
          "jpeg_compression",
          "speckle_noise",
          "gaussian_blur",
          "spatter",
          "saturate"};
}

/// How many of the names, from the first, make up the benchmark.
inline constexpr int kBenchmarkCorruptions = 15;
inline constexpr int kSeverities = 5;

/// Whose constants: those of CIFAR-10-C and CIFAR-100-C are for pictures of 32x32 pixels, those of
/// ImageNet-C for 224x224. Neither are the others made larger.
enum class CorruptionSet { kCifar, kImageNet };
constexpr std::array<std::string_view, 2> enum_names(CorruptionSet) {
  return {"cifar", "imagenet"};
}

/// Side of the pictures that the constants of a set are for, and bytes of one (rows of RGB pixels).
constexpr std::int64_t corruption_side(CorruptionSet set) {
  return set == CorruptionSet::kCifar ? 32 : 224;
}
constexpr std::int64_t corruption_bytes(CorruptionSet set) {
  return corruption_side(set) * corruption_side(set) * 3;
}

std::string_view corruption_name(Corruption corruption);
/// Throws ConfigError with the known names when there is no such corruption.
Corruption parse_corruption(std::string_view name);
/// The set whose constants are for pictures of this size. Throws ConfigError when there is none.
CorruptionSet corruption_set_for(std::int64_t height, std::int64_t width);

class CorruptionEffect;

/// Applies one corruption at one severity. The result depends on (seed, corruption, severity, image
/// index, the image) and on nothing else: any number of threads may call `apply`, in any order.
/// What is drawn differs from the published generator (which fixed no seed); what is done does not,
/// except that frost uses made textures unless photographs are given.
class Corruptor {
 public:
  /// Throws ConfigError when the severity is not 1 .. 5. `textures` are used by frost only, and must
  /// have room for crops of the set's size; without them it uses FrostTextures::procedural().
  Corruptor(Corruption corruption, int severity, std::uint64_t seed,
            std::shared_ptr<const FrostTextures> textures = nullptr,
            CorruptionSet set = CorruptionSet::kCifar);
  ~Corruptor();
  Corruptor(Corruptor&&) noexcept;
  Corruptor& operator=(Corruptor&&) noexcept;

  /// Both spans are one RGB image of the set's size, rows of interleaved bytes; they must not overlap.
  /// Throws ConfigError when a span has another size.
  void apply(std::int64_t image_index, std::span<const std::uint8_t> input,
             std::span<std::uint8_t> output) const;

  Corruption corruption() const { return corruption_; }
  int severity() const { return severity_; }
  std::uint64_t seed() const { return seed_; }
  CorruptionSet set() const { return set_; }

 private:
  Corruption corruption_;
  int severity_;
  std::uint64_t seed_;
  CorruptionSet set_;
  std::unique_ptr<const CorruptionEffect> effect_;
};

}  // namespace gala
