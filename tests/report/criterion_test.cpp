#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "gala/report/figures.h"

namespace gala::test {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

// The numbers of the two-layer example, worked out from Eq. 8 by hand.
TEST(Criterion, PrefersTheBetterAlignedLayerWhenTheDisplacementIsLarge) {
  EXPECT_NEAR(criterion(10, 1, 30 * kDegree), 0.888, 5e-4);
  EXPECT_NEAR(criterion(10, 3, 60 * kDegree), 0.679, 5e-4);
}

TEST(Criterion, PrefersTheLargerUpdateWhenTheDisplacementIsSmall) {
  EXPECT_NEAR(criterion(0.5, 1, 30 * kDegree), 0.985, 5e-4);
  EXPECT_NEAR(criterion(0.5, 3, 60 * kDegree), 0.991, 5e-4);
}

TEST(Criterion, IsTheCosineBetweenUpdateAndSum) {
  // u = (3, 4), TD = (2, 0): |u| = 5, cos β = 3/5; u·(u+TD) = 31, |u+TD| = sqrt(41).
  EXPECT_NEAR(criterion(2, 5, std::acos(0.6)), 31 / (5 * std::sqrt(41)), 1e-12);
}

TEST(Criterion, LevelCurvesLieOnTheirLevels) {
  const Figure figure = criterion_figure();
  ASSERT_EQ(figure.charts.size(), 3U);
  const double displacement[] = {10, 0.5};
  for (std::size_t c = 0; c < 2; ++c) {
    const auto& values = figure.charts[c].spec["data"]["values"];
    EXPECT_GT(values.size(), 100U);
    for (const auto& piece : values) {
      const double level = std::stod(piece["level"].get<std::string>());
      const double y = piece["y"], x = piece["x"];
      // Linear between the points of a grid; near the point where update and displacement cancel the
      // criterion jumps.
      if (std::hypot(x - 180, 100 * (y - displacement[c])) < 40) continue;
      EXPECT_NEAR(criterion(displacement[c], y, x * kDegree), level, 0.02) << x << ' ' << y;
    }
  }
}

}  // namespace
}  // namespace gala::test
