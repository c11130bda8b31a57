#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5]
using Affine = std::array<double, 6>;

/// The map that takes three points onto the three corners of the inner square, slightly moved: read
/// backwards, it tells for a pixel of the result where it comes from. Corners lie a third of the side
/// around the centre, each coordinate of their images is off by U(-jitter, jitter).
Affine draw_backward_map(Random& random, int side, double jitter) {
  const double low = side / 2 - side / 3, high = side / 2 + side / 3;
  const double corner_x[] = {high, high, low}, corner_y[] = {high, low, low};
  double to_x[3], to_y[3];
  for (int i = 0; i < 3; ++i) {
    to_x[i] = corner_x[i] + random.uniform(-jitter, jitter);
    to_y[i] = corner_y[i] + random.uniform(-jitter, jitter);
  }
  // Solve from (moved) to (corner): differences against the first point leave a 2x2 system.
  const double ax = to_x[1] - to_x[0], ay = to_y[1] - to_y[0];
  const double bx = to_x[2] - to_x[0], by = to_y[2] - to_y[0];
  const double determinant = ax * by - ay * bx;
  auto row = [&](const double* corner) {
    const double a = corner[1] - corner[0], b = corner[2] - corner[0];
    const double u = (a * by - b * ay) / determinant, v = (b * ax - a * bx) / determinant;
    return std::array<double, 3>{u, v, corner[0] - u * to_x[0] - v * to_y[0]};
  };
  const auto x = row(corner_x), y = row(corner_y);
  return {x[0], x[1], x[2], y[0], y[1], y[2]};
}

/// A random affine map, then a remap by two smooth fields.
class ElasticTransform final : public CorruptionEffect {
 public:
  ElasticTransform(int side, double strength, double sigma, double jitter)
      : side_(side), strength_(static_cast<float>(strength)), jitter_(jitter), smooth_(sigma, 3) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Colours image(side_), mapped(side_);
    read_colours(input, image);
    const Affine map = draw_backward_map(random, side_, jitter_);
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        mapped[y * side_ + x] =
            sample_bilinear<Border::kReflect101>(image, clamp_far(map[3] * x + map[4] * y + map[5]),
                                                 clamp_far(map[0] * x + map[1] * y + map[2]));
      }
    }
    if (strength_ == 0) return write_levels(mapped, output);
    Plane shift_x(side_), shift_y(side_);
    draw_field(random, shift_x);
    draw_field(random, shift_y);
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        const int i = y * side_ + x;
        image[i] = sample_bilinear<Border::kReflect>(mapped, static_cast<float>(y) + shift_y[i],
                                                     static_cast<float>(x) + shift_x[i]);
      }
    }
    write_levels(image, output);
  }

 private:
  /// Maps that nearly fold reach several images away, where the borders go on; no further than
  /// numbers do.
  static float clamp_far(double position) {
    return static_cast<float>(std::clamp(position, -1e6, 1e6));
  }

  void draw_field(Random& random, Plane& field) const {
    for (float& value : field) value = static_cast<float>(random.uniform(-1, 1));
    smooth_.apply<Border::kReflect>(field);
    for (float& value : field) value *= strength_;
  }

  int side_;
  float strength_;
  double jitter_;
  GaussianFilter smooth_;
};

}  // namespace

EffectPointer make_elastic_transform(CorruptionSet set, int severity) {
  // ImageNet-C's are multiples of 244, a slip of the published code that made its data.
  constexpr double kStrength[][kSeverities] = {{0, 1.6, 2.56, 3.2, 3.2},
                                               {488, 488, 12.2, 17.08, 29.28}};
  constexpr double kSigma[][kSeverities] = {{0, 6.4, 1.92, 1.28, 0.96},
                                            {170.8, 19.52, 2.44, 2.44, 2.44}};
  constexpr double kJitter[][kSeverities] = {{2.56, 2.24, 1.92, 1.6, 0.96},
                                             {24.4, 48.8, 4.88, 4.88, 4.88}};
  return std::make_unique<ElasticTransform>(side_of(set), constant_of(kStrength, set, severity),
                                            constant_of(kSigma, set, severity),
                                            constant_of(kJitter, set, severity));
}

}  // namespace gala
