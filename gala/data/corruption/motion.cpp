#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// A camera that moves along a line within 45 degrees of the horizontal.
class MotionBlur final : public CorruptionEffect {
 public:
  MotionBlur(int radius, double sigma) : filter_(radius, sigma) {}
  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Colours image, blurred;
    read_colours(input, image);
    filter_.apply(random.uniform(-45, 45), image, blurred);
    write_levels(blurred, output);
  }

 private:
  MotionFilter filter_;
};

}  // namespace

EffectPointer make_motion_blur(int severity) {
  constexpr int kRadius[] = {6, 6, 6, 8, 9};
  constexpr double kSigma[] = {1, 1.5, 2, 2, 2.5};
  return std::make_unique<MotionBlur>(kRadius[severity - 1], kSigma[severity - 1]);
}

}  // namespace gala
