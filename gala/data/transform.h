#pragma once
#include <array>
#include <cstdint>

#include "gala/data/image.h"
#include "gala/data/resize.h"
#include "gala/model/preprocessing.h"

namespace gala {

/// What one thread reuses from picture to picture.
struct TransformScratch {
  Resizer resizer;
  std::vector<std::uint8_t> pixels;
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

 private:
  std::array<std::array<float, 256>, 3> table_{};
  std::array<int, 3> channel_{};  ///< which source channel each plane takes
};

/// The evaluation transform: resize to size x size (aspect not kept, nothing cropped), normalise.
class EvaluationTransform : public Transform {
 public:
  explicit EvaluationTransform(const Preprocessing& preprocessing);
  std::int64_t size() const override { return size_; }
  void apply(const Image& image, std::uint64_t step, std::uint64_t slot, TransformScratch& scratch,
             float* out) const override;

 private:
  std::int64_t size_;
  Filter filter_;
  Normalizer normalizer_;
};

/// All pixels of a picture.
PixelView view_of(const Image& image);

}  // namespace gala
