#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gala/data/image.h"
#include "gala/data/resize.h"
#include "gala/model/preprocessing.h"

namespace gala {

/// What one thread reuses from picture to picture.
struct TransformScratch {
  Resizer resizer;
  std::vector<std::uint8_t> pixels, varied, warped;
  std::vector<float> planes;
};

/// Turns pictures into a network's input. Thread safe.
class Transform {
 public:
  virtual ~Transform() = default;
  /// Height and width of what `apply` writes for an 8-bit picture.
  virtual std::int64_t size() const = 0;
  /// Writes 3 x size x size values. `step` and `slot` say which batch and which place in it, for
  /// transforms that draw random numbers.
  virtual void apply(const Image& image, std::uint64_t step, std::uint64_t slot,
                     TransformScratch& scratch, float* out) const = 0;
};

/// 8-bit pixels to normalised planes: (pixel / 255 - mean) / std in float32, rounded as torchvision
/// rounds, in the channel order the weights expect.
class Normalizer {
 public:
  explicit Normalizer(const Preprocessing& preprocessing);
  /// Writes 3 x height x width values.
  void apply(PixelView source, float* out) const;
  /// The same from planes of red, green and blue, one behind the other.
  void apply_to_planes(std::span<const std::uint8_t> planes, float* out) const;

 private:
  std::array<std::array<float, 256>, 3> table_{};
  std::array<int, 3> channel_{};  ///< which source channel each plane takes
};

/// What the transforms below share: a square of the weights' size, resizing and normalisation.
class PixelTransform : public Transform {
 public:
  std::int64_t size() const override { return size_; }

 protected:
  explicit PixelTransform(const Preprocessing& preprocessing);

  /// The picture, or a part of it, as size x size pixels, which lie in `scratch` or in the source.
  PixelView resized(PixelView source, TransformScratch& scratch) const {
    return scratch.resizer.resize(source, size_, size_, filter_);
  }
  /// Normalises size x size pixels that lie row by row without gaps.
  void normalize(std::span<const std::uint8_t> pixels, float* out) const {
    normalizer_.apply({pixels.data(), size_, size_, size_ * 3}, out);
  }
  void normalize(PixelView pixels, float* out) const { normalizer_.apply(pixels, out); }
  void normalize_planes(std::span<const std::uint8_t> planes, float* out) const {
    normalizer_.apply_to_planes(planes, out);
  }

 private:
  std::int64_t size_;
  Filter filter_;
  Normalizer normalizer_;
};

/// The evaluation transform: resize to size x size (aspect not kept, nothing cropped), normalise.
class EvaluationTransform : public PixelTransform {
 public:
  explicit EvaluationTransform(const Preprocessing& preprocessing)
      : PixelTransform(preprocessing) {}
  void apply(const Image& image, std::uint64_t step, std::uint64_t slot, TransformScratch& scratch,
             float* out) const override;
};

/// All pixels of a picture.
PixelView view_of(const Image& image);

}  // namespace gala
