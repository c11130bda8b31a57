#pragma once
#include <cstdint>

#include "gala/base/random.h"
#include "gala/data/transform.h"

namespace gala {

/// A rectangle of a picture, in pixels.
struct CropWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  bool operator==(const CropWindow&) const = default;
};

/// torchvision's RandomResizedCrop: up to ten tries at a part of the area (uniform in `smallest` .. 1)
/// with an aspect log-uniform in 3/4 .. 4/3, placed uniformly; else the largest central window whose
/// aspect is allowed.
CropWindow random_window(std::int64_t height, std::int64_t width, double smallest, Random& random);

/// DomainBed's training transform: a random window of 0.7 to 1 of the area resized to size x size, a
/// flip with probability 1/2, brightness, contrast, saturation and hue by up to 0.3 in random order,
/// grey with probability 0.1, normalisation. What is drawn depends on (seed, step, slot) alone.
class DomainBedAugment : public PixelTransform {
 public:
  DomainBedAugment(const Preprocessing& preprocessing, std::uint64_t seed)
      : PixelTransform(preprocessing), seed_(seed) {}
  void apply(const Image& image, std::uint64_t step, std::uint64_t slot, TransformScratch& scratch,
             float* out) const override;

 private:
  std::uint64_t seed_;
};

/// CIFAR's training transform: black padding of 4 pixels, a random crop of the original size, a flip
/// with probability 1/2, normalisation. Pictures of another size are resized first.
class CropFlipAugment : public PixelTransform {
 public:
  CropFlipAugment(const Preprocessing& preprocessing, std::uint64_t seed, std::int64_t padding = 4)
      : PixelTransform(preprocessing), seed_(seed), padding_(padding) {}
  void apply(const Image& image, std::uint64_t step, std::uint64_t slot, TransformScratch& scratch,
             float* out) const override;

 protected:
  std::uint64_t seed() const { return seed_; }
  /// Leaves the crop in `scratch.pixels`, before normalisation.
  void crop(const Image& image, std::uint64_t step, std::uint64_t slot,
            TransformScratch& scratch) const;

 private:
  std::uint64_t seed_;
  std::int64_t padding_;
};

}  // namespace gala
