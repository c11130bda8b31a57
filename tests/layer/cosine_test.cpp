#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "gala/base/random.h"
#include "gala/layer/layer_sums.h"

namespace gala {
namespace {

using Vector = std::vector<float>;

LayerSums sums_of(const Vector& update, const Vector& shift) {
  LayerSums sums;
  for (std::size_t i = 0; i < update.size(); ++i) {
    const double u = update[i], t = shift[i];
    sums.update_sq += u * u;
    sums.update_dot_shift += u * t;
    sums.shift_sq += t * t;
  }
  return sums;
}

/// The angle between u and u + TD, straight from the definition.
long double direct_cosine(const Vector& update, const Vector& shift) {
  long double dot = 0, update_sq = 0, sum_sq = 0;
  for (std::size_t i = 0; i < update.size(); ++i) {
    const long double u = update[i], s = u + shift[i];
    dot += u * s;
    update_sq += u * u;
    sum_sq += s * s;
  }
  return dot / (std::sqrt(update_sq) * std::sqrt(sum_sq));
}

/// |u| and |TD| with the angle beta between them.
LayerSums sums_at(double update, double shift, double beta) {
  return {.update_sq = update * update,
          .update_dot_shift = update * shift * std::cos(beta),
          .shift_sq = shift * shift};
}

/// Eq. 8 of the paper.
double equation_8(double u, double t, double beta) {
  return (t * std::cos(beta) + u) /
         std::sqrt(std::pow(t + u * std::cos(beta), 2) + std::pow(u * std::sin(beta), 2));
}

double degrees(double angle) {
  return angle * std::numbers::pi / 180;
}

Vector random_vector(Random& random, std::size_t size, double scale) {
  Vector vector;
  for (std::size_t i = 0; i < size; ++i)
    vector.push_back(static_cast<float>(scale * random.normal()));
  return vector;
}

TEST(Cosine, IsExactlyOneForALayerThatHasNotMoved) {
  Random random(1, "cosine");
  for (int trial = 0; trial < 200; ++trial) {
    const Vector update = random_vector(random, 37, std::pow(10.0, random.uniform(-20, 10)));
    EXPECT_EQ(cosine(sums_of(update, Vector(37, 0.0F))), 1.0);
  }
}

TEST(Cosine, IsZeroForALayerThatWouldNotMove) {
  EXPECT_EQ(cosine(sums_of(Vector(5, 0.0F), {1, 2, 3, 4, 5})), 0.0);
  EXPECT_EQ(cosine(LayerSums{}), 0.0);
}

TEST(Cosine, IsZeroForAReturnToTheAnchor) {
  Random random(2, "cosine");
  for (int trial = 0; trial < 200; ++trial) {
    const Vector update = random_vector(random, 41, 1e-3);
    Vector shift;
    for (const float u : update) shift.push_back(-u);
    EXPECT_EQ(cosine(sums_of(update, shift)), 0.0);
  }
}

TEST(Cosine, AgreesWithTheDirectCosine) {
  Random random(3, "cosine");
  for (int trial = 0; trial < 500; ++trial) {
    const Vector update = random_vector(random, 100, 1e-3);
    const Vector shift = random_vector(random, 100, std::pow(10.0, random.uniform(-8, 2)));
    EXPECT_NEAR(cosine(sums_of(update, shift)), static_cast<double>(direct_cosine(update, shift)),
                1e-12);
  }
}

TEST(Cosine, AgreesWithTheDirectCosineAtTheEndsOfFloat) {
  Random random(4, "cosine");
  for (const double scale : {1e-36, 1e36}) {
    const Vector update = random_vector(random, 50, scale),
                 shift = random_vector(random, 50, scale);
    EXPECT_NEAR(cosine(sums_of(update, shift)), static_cast<double>(direct_cosine(update, shift)),
                1e-12);
  }
}

TEST(Cosine, AgreesWithEquation8) {
  Random random(5, "cosine");
  for (int trial = 0; trial < 500; ++trial) {
    const double u = std::pow(10.0, random.uniform(-3, 3)),
                 t = std::pow(10.0, random.uniform(-3, 3));
    const double beta = random.uniform(0, degrees(175));
    EXPECT_NEAR(cosine(sums_at(u, t, beta)), equation_8(u, t, beta), 1e-11)
        << u << " " << t << " " << beta;
  }
}

TEST(Cosine, GivesTheWorkedExampleOfThePaper) {
  const auto small = [](double t) { return cosine(sums_at(1, t, degrees(30))); };
  const auto large = [](double t) { return cosine(sums_at(3, t, degrees(60))); };
  EXPECT_NEAR(small(10), 0.888, 5e-4);
  EXPECT_NEAR(large(10), 0.679, 5e-4);
  EXPECT_NEAR(small(0.5), 0.985, 5e-4);
  EXPECT_NEAR(large(0.5), 0.991, 5e-4);
}

TEST(Cosine, StaysWithinItsRange) {
  Random random(6, "cosine");
  for (int trial = 0; trial < 2000; ++trial) {
    // Parallel and nearly opposite vectors: rounding leaves the quotient on either side of +-1.
    const Vector update = random_vector(random, 7, 1.0);
    const auto factor = static_cast<float>(random.uniform(-3, 3));
    Vector shift;
    for (const float u : update) shift.push_back(factor * u);
    const double value = cosine(sums_of(update, shift));
    EXPECT_LE(value, 1.0);
    EXPECT_GE(value, -1.0);
    if (std::abs(factor + 1) < 0.01) continue;
    EXPECT_NEAR(value, factor > -1 ? 1.0 : -1.0, 1e-9) << factor;
  }
  EXPECT_EQ(cosine({.update_sq = 1, .update_dot_shift = -10, .shift_sq = 82}), -1.0);
}

TEST(Cosine, IsNeverNotANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(cosine({.update_sq = nan, .update_dot_shift = nan, .shift_sq = 1}), 0.0);
  EXPECT_EQ(cosine({.update_sq = 1, .update_dot_shift = nan, .shift_sq = 1}), 0.0);
  EXPECT_EQ(cosine({.update_sq = 1, .update_dot_shift = nan, .shift_sq = nan}), 0.0);
}

}  // namespace
}  // namespace gala
