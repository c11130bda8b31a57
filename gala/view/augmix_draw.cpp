#include "gala/view/augmix_draw.h"

#include <cmath>
#include <numbers>

namespace gala {
namespace {

enum Kind : std::uint64_t {
  kAutocontrast,
  kEqualize,
  kRotate,
  kSolarize,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kPosterize,
  kKinds
};

/// PIL rounds the entries of a rotation to 15 digits.
double rounded(double value) {
  return std::round(value * 1e15) / 1e15;
}

AugmixChange draw_change(Random& random, double severity) {
  const std::uint64_t kind = random.below(kKinds);
  AugmixChange change;
  if (kind == kAutocontrast || kind == kEqualize) {
    (kind == kEqualize ? change.equalize : change.stretch) = 1;
    return change;
  }
  const double level = random.uniform(0.1, severity);
  if (kind == kSolarize) {
    change.threshold = 256 - std::trunc(level * 256 / 10);
    return change;
  }
  if (kind == kPosterize) {
    change.coarse = std::exp2(4 + std::trunc(level * 4 / 10));
    return change;
  }
  const double sign = random.uniform() > 0.5 ? -1 : 1;
  if (kind == kRotate) {
    const double degrees = sign * std::trunc(level * 30 / 10);
    // As PIL's rotate: counterclockwise, and the map goes from the new picture to the old one.
    const double angle = -degrees * std::numbers::pi / 180;
    change.cosine = rounded(std::cos(angle));
    change.skew_x = rounded(std::sin(angle));
    change.skew_y = -change.skew_x;
    change.turn = 1;
  }
  if (kind == kShearX) change.skew_x = sign * level * 0.3 / 10;
  if (kind == kShearY) change.skew_y = sign * level * 0.3 / 10;
  if (kind == kTranslateX) change.shift_x = sign * level;
  if (kind == kTranslateY) change.shift_y = sign * level;
  return change;
}

}  // namespace

AugmixDraw draw_augmix(Random& random, double severity) {
  AugmixDraw draw;
  draw.crop_x = random.uniform();
  draw.crop_y = random.uniform();
  draw.flip = random.uniform() < 0.5 ? 1 : 0;
  draw.kept = random.uniform();  // Beta(1, 1)
  // Dirichlet(1, 1, 1): exponential draws over their sum.
  double sum = 0;
  for (double& weight : draw.weights) sum += weight = -std::log(1 - random.uniform());
  for (double& weight : draw.weights) weight /= sum;
  for (auto& chain : draw.changes) {
    const std::uint64_t depth = 1 + random.below(kAugmixDeepest);
    for (std::uint64_t i = 0; i < depth; ++i) chain[i] = draw_change(random, severity);
  }
  return draw;
}

}  // namespace gala
