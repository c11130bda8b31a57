#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// A camera that moves along a line within 45 degrees of the horizontal.
class MotionBlur final : public CorruptionEffect {
 public:
  MotionBlur(int side, int radius, double sigma) : side_(side), filter_(radius, sigma) {}
  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Colours image(side_), blurred(side_);
    read_colours(input, image);
    filter_.apply(random.uniform(-45, 45), image, blurred);
    write_levels(blurred, output);
  }

 private:
  int side_;
  MotionFilter filter_;
};

}  // namespace

EffectPointer make_motion_blur(CorruptionSet set, int severity) {
  constexpr int kRadius[][kSeverities] = {{6, 6, 6, 8, 9}, {10, 15, 15, 15, 20}};
  constexpr double kSigma[][kSeverities] = {{1, 1.5, 2, 2, 2.5}, {3, 5, 8, 12, 15}};
  return std::make_unique<MotionBlur>(side_of(set), constant_of(kRadius, set, severity),
                                      constant_of(kSigma, set, severity));
}

}  // namespace gala
