#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/normal.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

struct SnowConstants {
  double mean, deviation;  // of the flakes' noise
  double zoom, threshold;
  int radius;
  double sigma;  // of their fall
  double blend;  // how much of the image keeps its colour
};

/// Noise cut at a threshold, blown up and streaked, over an image that is whitened a little; the
/// same flakes are added once more, turned by 180 degrees.
class Snow final : public CorruptionEffect {
 public:
  Snow(int side, const SnowConstants& constants)
      : side_(side),
        constants_(constants),
        zoom_(side, constants.zoom),
        fall_(constants.radius, constants.sigma) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Plane flakes(side_);
    draw_flakes(random, flakes);
    const auto keep = static_cast<float>(constants_.blend), whiten = 1 - keep;
    const int pixels = flakes.size();
    for (int i = 0; i < pixels; ++i) {
      const std::uint8_t* in = &input[3 * i];
      const float grey = 0.299f * in[0] + 0.587f * in[1] + 0.114f * in[2];
      const float white = 1.5f * grey + 127.5f;
      const float snow = flakes[i] + flakes[pixels - 1 - i];
      for (int c = 0; c < 3; ++c) {
        const float value = in[c];
        output[3 * i + c] = to_level(keep * value + whiten * std::max(value, white) + snow);
      }
    }
  }

 private:
  void draw_flakes(Random& random, Plane& flakes) const {
    Plane noise(side_), zoomed(side_);
    const int begin = zoom_.crop_begin(), end = begin + zoom_.crop_size();
    for (int y = begin; y < end; ++y) {
      for (int x = begin; x < end; ++x) {
        noise[y * side_ + x] =
            static_cast<float>(constants_.mean + constants_.deviation * normal_(random));
      }
    }
    zoom_.add_to(noise, zoomed);
    const auto threshold = static_cast<float>(constants_.threshold);
    for (float& value : zoomed) value = value < threshold ? 0.0f : to_level(value * 255);
    fall_.apply(random.uniform(-135, -45), zoomed, flakes);
  }

  int side_;
  SnowConstants constants_;
  NormalSampler normal_;
  ClippedZoom zoom_;
  MotionFilter fall_;
};

}  // namespace

EffectPointer make_snow(CorruptionSet set, int severity) {
  constexpr SnowConstants kConstants[][kSeverities] = {{{0.1, 0.2, 1, 0.6, 8, 3, 0.95},
                                                        {0.1, 0.2, 1, 0.5, 10, 4, 0.9},
                                                        {0.15, 0.3, 1.75, 0.55, 10, 4, 0.9},
                                                        {0.25, 0.3, 2.25, 0.6, 12, 6, 0.85},
                                                        {0.3, 0.3, 1.25, 0.65, 14, 12, 0.8}},
                                                       {{0.1, 0.3, 3, 0.5, 10, 4, 0.8},
                                                        {0.2, 0.3, 2, 0.5, 12, 4, 0.7},
                                                        {0.55, 0.3, 4, 0.9, 12, 8, 0.7},
                                                        {0.55, 0.3, 4.5, 0.85, 12, 8, 0.65},
                                                        {0.55, 0.3, 2.5, 0.85, 12, 12, 0.55}}};
  return std::make_unique<Snow>(side_of(set), constant_of(kConstants, set, severity));
}

}  // namespace gala
