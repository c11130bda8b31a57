#include "gala/data/corruption/edges.h"
#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/normal.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

struct SpatterConstants {
  double mean, deviation, sigma;  // of the liquid's noise and its smoothing
  double threshold;
  double mix;  // water: opacity; mud: smoothing of the mask
  bool mud;
};

class Spatter final : public CorruptionEffect {
 public:
  Spatter(int side, const SpatterConstants& constants)
      : side_(side), constants_(constants), smooth_(constants.sigma), smooth_mask_(constants.mix) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Plane liquid(side_);
    for (float& value : liquid) {
      value = static_cast<float>(constants_.mean + constants_.deviation * normal_(random));
    }
    smooth_.apply<Border::kReplicate>(liquid);
    if (constants_.mud) {
      mud(liquid, input, output);
    } else {
      water(liquid, input, output);
    }
  }

 private:
  /// Brown where the smoothed mask is dense.
  void mud(Plane& mask, const std::uint8_t* input, std::uint8_t* output) const {
    constexpr float kBrown[] = {63, 42, 20};
    for (float& value : mask) value = value > static_cast<float>(constants_.threshold) ? 1 : 0;
    smooth_mask_.apply<Border::kReplicate>(mask);
    const int pixels = mask.size();
    for (int i = 0; i < pixels; ++i) {
      const float cover = mask[i] < 0.8f ? 0 : mask[i];
      for (int c = 0; c < 3; ++c) {
        output[3 * i + c] = to_level(input[3 * i + c] * (1 - cover) + kBrown[c] * cover);
      }
    }
  }

  /// Pale turquoise drops, lit at their rims: the distance to the drops' edges, equalised and
  /// embossed, times the depth of the liquid.
  void water(const Plane& liquid, const std::uint8_t* input, std::uint8_t* output) const {
    constexpr float kTurquoise[] = {175, 238, 238};
    const int pixels = liquid.size();
    Levels depth(side_);
    for (int i = 0; i < pixels; ++i) {
      depth[i] =
          liquid[i] < static_cast<float>(constants_.threshold) ? 0 : to_level(liquid[i] * 255);
    }
    Plane distance(side_);
    distance_to_edges(find_edges(depth, 50, 150), distance);
    for (float& value : distance) value = std::min(value, 20.0f);
    Levels light = equalise(cut_to_levels(box_blur(distance)));
    light = round_to_levels(box_blur(emboss(light)));
    Plane water(side_);
    float strongest = 0;
    for (int i = 0; i < pixels; ++i) {
      water[i] = static_cast<float>(depth[i]) * light[i];
      strongest = std::max(strongest, water[i]);
    }
    // Without a drop the published code divides zero by zero; here the image stays as it is.
    const float scale = strongest > 0 ? static_cast<float>(constants_.mix) / strongest : 0;
    for (int i = 0; i < pixels; ++i) {
      for (int c = 0; c < 3; ++c) {
        output[3 * i + c] = to_level(input[3 * i + c] + kTurquoise[c] * water[i] * scale);
      }
    }
  }

  int side_;
  SpatterConstants constants_;
  NormalSampler normal_;
  GaussianFilter smooth_, smooth_mask_;
};

}  // namespace

EffectPointer make_spatter(CorruptionSet set, int severity) {
  constexpr SpatterConstants kConstants[][kSeverities] = {{{0.62, 0.1, 0.7, 0.7, 0.5, false},
                                                           {0.65, 0.1, 0.8, 0.7, 0.5, false},
                                                           {0.65, 0.3, 1, 0.69, 0.5, false},
                                                           {0.65, 0.1, 0.7, 0.69, 0.6, true},
                                                           {0.65, 0.1, 0.5, 0.68, 0.6, true}},
                                                          {{0.65, 0.3, 4, 0.69, 0.6, false},
                                                           {0.65, 0.3, 3, 0.68, 0.6, false},
                                                           {0.65, 0.3, 2, 0.68, 0.5, false},
                                                           {0.65, 0.3, 1, 0.65, 1.5, true},
                                                           {0.67, 0.4, 1, 0.65, 1.5, true}}};
  return std::make_unique<Spatter>(side_of(set), constant_of(kConstants, set, severity));
}

}  // namespace gala
