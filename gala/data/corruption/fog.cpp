#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// Clouds by the diamond-square rule on a 32x32 torus, scaled to 0 .. 1. At each level a point is
/// the mean of its four neighbours plus wobble * U(-wobble, wobble), and the wobble shrinks by
/// `decay`.
void draw_clouds(Random& random, double decay, Plane& clouds) {
  auto at = [&](int y, int x) -> float& {
    return clouds[(y & (kSide - 1)) * kSide + (x & (kSide - 1))];
  };
  at(0, 0) = 0;
  double wobble = 100;
  for (int step = kSide; step >= 2; step /= 2, wobble /= decay) {
    const int half = step / 2;
    const double reach = wobble * wobble;
    auto displaced = [&](float sum) {
      return sum / 4 + static_cast<float>(random.uniform(-reach, reach));
    };
    for (int y = 0; y < kSide; y += step) {
      for (int x = 0; x < kSide; x += step) {
        at(y + half, x + half) =
            displaced(at(y, x) + at(y + step, x) + at(y, x + step) + at(y + step, x + step));
      }
    }
    for (int y = 0; y < kSide; y += step) {
      for (int x = 0; x < kSide; x += step) {
        at(y, x + half) =
            displaced(at(y + half, x + half) + at(y - half, x + half) + at(y, x) + at(y, x + step));
        at(y + half, x) =
            displaced(at(y + half, x + half) + at(y + half, x - half) + at(y, x) + at(y + step, x));
      }
    }
  }
  const auto [low, high] = std::minmax_element(clouds.begin(), clouds.end());
  const float base = *low, scale = 1 / (*high - *low);
  for (float& value : clouds) value = (value - base) * scale;
}

/// (x + strength * clouds), scaled so that the brightest value of the image stays the limit.
class Fog final : public CorruptionEffect {
 public:
  Fog(double strength, double decay)
      : strength_(static_cast<float>(strength * 255)), decay_(decay) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Plane clouds;
    draw_clouds(random, decay_, clouds);
    const float brightest = *std::max_element(input, input + kValues);
    const float scale = brightest / (brightest + strength_);
    for (int i = 0; i < kPixels; ++i) {
      for (int c = 0; c < 3; ++c) {
        output[3 * i + c] = to_level((input[3 * i + c] + strength_ * clouds[i]) * scale);
      }
    }
  }

 private:
  float strength_;
  double decay_;
};

}  // namespace

EffectPointer make_fog(int severity) {
  constexpr double kStrength[] = {0.2, 0.5, 0.75, 1, 1.5};
  constexpr double kDecay[] = {3, 3, 2.5, 2, 1.75};
  return std::make_unique<Fog>(kStrength[severity - 1], kDecay[severity - 1]);
}

}  // namespace gala
