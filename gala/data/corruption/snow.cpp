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
  explicit Snow(const SnowConstants& constants)
      : constants_(constants), zoom_(constants.zoom), fall_(constants.radius, constants.sigma) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Plane flakes;
    draw_flakes(random, flakes);
    const auto keep = static_cast<float>(constants_.blend), whiten = 1 - keep;
    for (int i = 0; i < kPixels; ++i) {
      const std::uint8_t* in = &input[3 * i];
      const float grey = 0.299f * in[0] + 0.587f * in[1] + 0.114f * in[2];
      const float white = 1.5f * grey + 127.5f;
      const float snow = flakes[i] + flakes[kPixels - 1 - i];
      for (int c = 0; c < 3; ++c) {
        const float value = in[c];
        output[3 * i + c] = to_level(keep * value + whiten * std::max(value, white) + snow);
      }
    }
  }

 private:
  void draw_flakes(Random& random, Plane& flakes) const {
    Plane noise, zoomed;
    const int begin = zoom_.crop_begin(), end = begin + zoom_.crop_size();
    for (int y = begin; y < end; ++y) {
      for (int x = begin; x < end; ++x) {
        noise[y * kSide + x] =
            static_cast<float>(constants_.mean + constants_.deviation * normal_(random));
      }
    }
    zoomed.fill(0);
    zoom_.add_to(noise, zoomed);
    const auto threshold = static_cast<float>(constants_.threshold);
    for (float& value : zoomed) value = value < threshold ? 0.0f : to_level(value * 255);
    fall_.apply(random.uniform(-135, -45), zoomed, flakes);
  }

  SnowConstants constants_;
  NormalSampler normal_;
  ClippedZoom zoom_;
  MotionFilter fall_;
};

}  // namespace

EffectPointer make_snow(int severity) {
  constexpr SnowConstants kConstants[] = {{0.1, 0.2, 1, 0.6, 8, 3, 0.95},
                                          {0.1, 0.2, 1, 0.5, 10, 4, 0.9},
                                          {0.15, 0.3, 1.75, 0.55, 10, 4, 0.9},
                                          {0.25, 0.3, 2.25, 0.6, 12, 6, 0.85},
                                          {0.3, 0.3, 1.25, 0.65, 14, 12, 0.8}};
  return std::make_unique<Snow>(kConstants[severity - 1]);
}

}  // namespace gala
