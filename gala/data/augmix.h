#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "gala/data/augment.h"

namespace gala {

// Changes of interleaved RGB bytes, channel by channel, with the results of PIL's ImageOps.
void stretch_contrast(std::span<std::uint8_t> pixels);
void equalize_histogram(std::span<std::uint8_t> pixels);
/// Keeps the upper `bits` (0 to 8) of every value.
void posterize(std::span<std::uint8_t> pixels, int bits);
/// Inverts every value that is not below `threshold`.
void solarize(std::span<std::uint8_t> pixels, int threshold);

/// x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5].
using AffineMap = std::array<double, 6>;

/// Every pixel of `out`, as large as `source`, is read where the map of its centre falls, bilinearly;
/// black outside. PIL's Image.transform(AFFINE, BILINEAR).
void warp(PixelView source, const AffineMap& map, std::span<std::uint8_t> out);
/// The map that turns a picture about its centre by whole degrees, counterclockwise, as PIL's rotate.
AffineMap rotation(int degrees, std::int64_t height, std::int64_t width);

/// The changes AugMix draws from.
enum class AugMixChange {
  kAutocontrast,
  kEqualize,
  kPosterize,
  kRotate,
  kSolarize,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY
};

/// AugMix (Hendrycks et al. 2020) on top of CropFlipAugment, with the published settings: three
/// chains of one to three changes of severity 3 are mixed by Dirichlet(1, 1, 1) weights w, and the
/// mixture with the crop itself by m ~ Beta(1, 1):
///   (1 - m) x + m (w1 chain1(x) + w2 chain2(x) + w3 chain3(x)),  after normalisation.
/// What is drawn depends on (seed, step, slot) alone.
///
/// With `view_size` B > 0 a batch holds three views of B pictures: slots 0 .. B-1 the crops as they
/// are, then two mixtures of each. The views of a picture share their crop and flip.
class AugMixAugment : public CropFlipAugment {
 public:
  static constexpr int kChains = 3, kDeepest = 3, kSeverity = 3, kViews = 3;

  AugMixAugment(const Preprocessing& preprocessing, std::uint64_t seed, std::int64_t view_size = 0)
      : CropFlipAugment(preprocessing, seed), view_size_(static_cast<std::uint64_t>(view_size)) {}
  void apply(const Image& image, std::uint64_t step, std::uint64_t slot, TransformScratch& scratch,
             float* out) const override;

 private:
  void change(AugMixChange which, Random& random, TransformScratch& scratch) const;

  std::uint64_t view_size_;
};

}  // namespace gala
