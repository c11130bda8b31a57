#include "gala/view/augment_draw.h"

#include <cmath>
#include <numbers>

namespace gala {
namespace {

/// How far from its middle each number may lie.
struct Spread {
  double brightness, contrast, saturation, hue, gamma, angle, scale, sigma;
};
constexpr Spread kFull{0.4, 0.3, 0.5, 0.06, 0.3, 15, 0.1, 0.5};
constexpr Spread kSoft{0.2, 0.15, 0.25, 0.03, 0.15, 8, 0.05, 0.25};
constexpr double kLeastSigma = 0.001;

}  // namespace

AugmentDraw draw_augment(Random& random, bool soft) {
  const Spread& spread = soft ? kSoft : kFull;
  const auto around = [&](double middle, double distance) {
    return random.uniform(middle - distance, middle + distance);
  };
  AugmentDraw draw;
  random.shuffle(draw.order);
  draw.brightness = around(1, spread.brightness);
  draw.contrast = around(1, spread.contrast);
  draw.saturation = around(1, spread.saturation);
  draw.hue = around(0, spread.hue);
  draw.gamma = around(1, spread.gamma);
  draw.angle = around(0, spread.angle);
  draw.shift_x = around(0, 1);
  draw.shift_y = around(0, 1);
  draw.scale = around(1, spread.scale);
  draw.sigma = random.uniform(kLeastSigma, spread.sigma);
  draw.flip = random.uniform() < 0.5;
  draw.noise_seed = random.next();
  return draw;
}

AugmentNumbers numbers_of(const AugmentDraw& draw) {
  AugmentNumbers numbers{};
  for (std::size_t i = 0; i < draw.order.size(); ++i) numbers.order[i] = draw.order[i];
  numbers.flip = draw.flip;
  numbers.brightness = static_cast<float>(draw.brightness);
  numbers.contrast = static_cast<float>(draw.contrast);
  numbers.saturation = static_cast<float>(draw.saturation);
  numbers.hue = static_cast<float>(6 * draw.hue);
  numbers.gamma = static_cast<float>(draw.gamma);
  const double angle = draw.angle * std::numbers::pi / 180;
  numbers.cosine = static_cast<float>(std::cos(angle) / draw.scale);
  numbers.sine = static_cast<float>(std::sin(angle) / draw.scale);
  numbers.shift_x = static_cast<float>(draw.shift_x / 16);
  numbers.shift_y = static_cast<float>(draw.shift_y / 16);
  const double near = std::exp(-0.5 / (draw.sigma * draw.sigma));
  const double far = std::exp(-2 / (draw.sigma * draw.sigma));
  const double sum = 1 + 2 * near + 2 * far;
  numbers.blur[0] = static_cast<float>(1 / sum);
  numbers.blur[1] = static_cast<float>(near / sum);
  numbers.blur[2] = static_cast<float>(far / sum);
  numbers.noise_seed[0] = static_cast<std::uint32_t>(draw.noise_seed);
  numbers.noise_seed[1] = static_cast<std::uint32_t>(draw.noise_seed >> 32);
  return numbers;
}

}  // namespace gala
