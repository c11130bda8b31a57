#include "gala/view/augment_draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace gala {
namespace {

std::vector<AugmentDraw> draws(int count, bool soft) {
  std::vector<AugmentDraw> all;
  for (int i = 0; i < count; ++i) {
    Random random(21, "draws", {static_cast<std::uint64_t>(i)});
    all.push_back(draw_augment(random, soft));
  }
  return all;
}

/// Uniform in low .. high: inside, near both ends, and the mean in the middle.
void expect_uniform(const std::vector<AugmentDraw>& all, double AugmentDraw::*member, double low,
                    double high) {
  double least = high, most = low, mean = 0;
  for (const AugmentDraw& draw : all) {
    least = std::min(least, draw.*member);
    most = std::max(most, draw.*member);
    mean += draw.*member / static_cast<double>(all.size());
  }
  const double range = high - low;
  EXPECT_GE(least, low);
  EXPECT_LT(most, high);
  EXPECT_LT(least, low + 0.01 * range);
  EXPECT_GT(most, high - 0.01 * range);
  EXPECT_NEAR(mean, (low + high) / 2,
              5 * range / std::sqrt(12.0 * static_cast<double>(all.size())));
}

TEST(AugmentDraws, LieInThePublishedRanges) {
  const auto all = draws(4000, false);
  expect_uniform(all, &AugmentDraw::brightness, 0.6, 1.4);
  expect_uniform(all, &AugmentDraw::contrast, 0.7, 1.3);
  expect_uniform(all, &AugmentDraw::saturation, 0.5, 1.5);
  expect_uniform(all, &AugmentDraw::hue, -0.06, 0.06);
  expect_uniform(all, &AugmentDraw::gamma, 0.7, 1.3);
  expect_uniform(all, &AugmentDraw::angle, -15, 15);
  expect_uniform(all, &AugmentDraw::scale, 0.9, 1.1);
  expect_uniform(all, &AugmentDraw::shift_x, -1, 1);
  expect_uniform(all, &AugmentDraw::shift_y, -1, 1);
  expect_uniform(all, &AugmentDraw::sigma, 0.001, 0.5);
}

TEST(AugmentDraws, LieInThePublishedSofterRanges) {
  const auto all = draws(4000, true);
  expect_uniform(all, &AugmentDraw::brightness, 0.8, 1.2);
  expect_uniform(all, &AugmentDraw::contrast, 0.85, 1.15);
  expect_uniform(all, &AugmentDraw::saturation, 0.75, 1.25);
  expect_uniform(all, &AugmentDraw::hue, -0.03, 0.03);
  expect_uniform(all, &AugmentDraw::gamma, 0.85, 1.15);
  expect_uniform(all, &AugmentDraw::angle, -8, 8);
  expect_uniform(all, &AugmentDraw::scale, 0.95, 1.05);
  expect_uniform(all, &AugmentDraw::shift_x, -1, 1);
  expect_uniform(all, &AugmentDraw::shift_y, -1, 1);
  expect_uniform(all, &AugmentDraw::sigma, 0.001, 0.25);
}

TEST(AugmentDraws, HaveEveryOrderEquallyOftenAndFlipHalfOfTheTime) {
  const auto all = draws(24000, false);
  std::map<std::array<ColourTurn, kColourTurns>, int> seen;
  int flips = 0;
  for (const AugmentDraw& draw : all) {
    ++seen[draw.order];
    flips += draw.flip;
  }
  ASSERT_EQ(seen.size(), 120U);
  double chi_squared = 0;
  for (const auto& [order, count] : seen) chi_squared += std::pow(count - 200.0, 2) / 200;
  EXPECT_LT(chi_squared, 119 + 5 * std::sqrt(2 * 119.0));
  EXPECT_NEAR(flips, 12000, 5 * std::sqrt(24000 * 0.25));
}

TEST(AugmentDraws, GiveABlurOfWeightOne) {
  for (const AugmentDraw& draw : draws(50, false)) {
    const AugmentNumbers numbers = numbers_of(draw);
    EXPECT_NEAR(numbers.blur[0] + 2 * numbers.blur[1] + 2 * numbers.blur[2], 1, 1e-6);
    EXPECT_GT(numbers.blur[0], numbers.blur[1]);
    EXPECT_GE(numbers.blur[1], numbers.blur[2]);
  }
}

}  // namespace
}  // namespace gala
