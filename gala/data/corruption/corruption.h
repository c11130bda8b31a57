#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gala/data/corruption/frost_textures.h"

namespace gala {

/// The 19 corruptions of Hendrycks & Dietterich (2019) with the constants of the 32x32 set
/// (CIFAR-10-C, CIFAR-100-C). The first 15, in this order, are the benchmark; the last four are the
/// extra ones, meant for tuning.
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

/// Side of the images the published constants are for, and bytes of one (rows of RGB pixels).
inline constexpr std::int64_t kCorruptionSide = 32;
inline constexpr std::int64_t kCorruptionBytes = kCorruptionSide * kCorruptionSide * 3;

std::string_view corruption_name(Corruption corruption);
/// Throws ConfigError with the known names when there is no such corruption.
Corruption parse_corruption(std::string_view name);
/// Throws ConfigError unless images of this size can be corrupted (only 32x32 can).
void require_corruptible(std::int64_t height, std::int64_t width);

class CorruptionEffect;

/// Applies one corruption at one severity. The result depends on (seed, corruption, severity, image
/// index, the image) and on nothing else: any number of threads may call `apply`, in any order.
/// What is drawn differs from the published generator (which fixed no seed); what is done does not,
/// except that frost uses made textures unless photographs are given.
class Corruptor {
 public:
  /// Throws ConfigError when the severity is not 1 .. 5. `textures` are used by frost only; without
  /// them it uses FrostTextures::procedural().
  Corruptor(Corruption corruption, int severity, std::uint64_t seed,
            std::shared_ptr<const FrostTextures> textures = nullptr);
  ~Corruptor();
  Corruptor(Corruptor&&) noexcept;
  Corruptor& operator=(Corruptor&&) noexcept;

  /// Both spans are one 32x32 RGB image, rows of interleaved bytes; they must not overlap. Throws
  /// ConfigError when a span has another size.
  void apply(std::int64_t image_index, std::span<const std::uint8_t> input,
             std::span<std::uint8_t> output) const;

  Corruption corruption() const { return corruption_; }
  int severity() const { return severity_; }
  std::uint64_t seed() const { return seed_; }

 private:
  Corruption corruption_;
  int severity_;
  std::uint64_t seed_;
  std::unique_ptr<const CorruptionEffect> effect_;
};

}  // namespace gala
