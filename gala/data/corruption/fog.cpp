#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// Clouds by the diamond-square rule on a torus whose side is a power of two, scaled to 0 .. 1. At each level a point is
/// the mean of its four neighbours plus wobble * U(-wobble, wobble), and the wobble shrinks by
/// `decay`.
void draw_clouds(Random& random, double decay, Plane& clouds) {
  const int side = clouds.side();
  auto at = [&](int y, int x) -> float& {
    return clouds[(y & (side - 1)) * side + (x & (side - 1))];
  };
  at(0, 0) = 0;
  double wobble = 100;
  for (int step = side; step >= 2; step /= 2, wobble /= decay) {
    const int half = step / 2;
    const double reach = wobble * wobble;
    auto displaced = [&](float sum) {
      return sum / 4 + static_cast<float>(random.uniform(-reach, reach));
    };
    for (int y = 0; y < side; y += step) {
      for (int x = 0; x < side; x += step) {
        at(y + half, x + half) =
            displaced(at(y, x) + at(y + step, x) + at(y, x + step) + at(y + step, x + step));
      }
    }
    for (int y = 0; y < side; y += step) {
      for (int x = 0; x < side; x += step) {
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
  Fog(int side, double strength, double decay)
      : side_(side),
        torus_(side == 32 ? 32 : 256),
        strength_(static_cast<float>(strength * 255)),
        decay_(decay) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Plane clouds(torus_);
    draw_clouds(random, decay_, clouds);
    const float brightest = *std::max_element(input, input + 3 * side_ * side_);
    const float scale = brightest / (brightest + strength_);
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        const int i = 3 * (y * side_ + x);
        const float cloud = strength_ * clouds[y * torus_ + x];
        for (int c = 0; c < 3; ++c) output[i + c] = to_level((input[i + c] + cloud) * scale);
      }
    }
  }

 private:
  int side_, torus_;  ///< of the image and of the clouds, of which it takes the corner
  float strength_;
  double decay_;
};

}  // namespace

EffectPointer make_fog(CorruptionSet set, int severity) {
  constexpr double kStrength[][kSeverities] = {{0.2, 0.5, 0.75, 1, 1.5}, {1.5, 2, 2.5, 2.5, 3}};
  constexpr double kDecay[][kSeverities] = {{3, 3, 2.5, 2, 1.75}, {2, 2, 1.7, 1.5, 1.4}};
  return std::make_unique<Fog>(side_of(set), constant_of(kStrength, set, severity),
                               constant_of(kDecay, set, severity));
}

}  // namespace gala
