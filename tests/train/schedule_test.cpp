#include "gala/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gala {
namespace {

TEST(Schedule, FallsAlongHalfACosineToZero) {
  const Schedule schedule{.kind = ScheduleKind::kCosine, .warmup = 0, .total = 120};
  EXPECT_DOUBLE_EQ(schedule.factor(0), 1);
  EXPECT_NEAR(schedule.factor(20), (2 + std::sqrt(3)) / 4, 1e-15);  // 30 degrees
  EXPECT_NEAR(schedule.factor(40), 0.75, 1e-15);                    // 60 degrees
  EXPECT_NEAR(schedule.factor(60), 0.5, 1e-15);
  EXPECT_NEAR(schedule.factor(80), 0.25, 1e-15);
  EXPECT_GT(schedule.factor(119), 0);
  EXPECT_EQ(schedule.factor(120), 0);
}

TEST(Schedule, RisesInAStraightLineAndReachesTheFullRateWithTheLastWarmUpStep) {
  const Schedule schedule{.kind = ScheduleKind::kCosine, .warmup = 5, .total = 15};
  for (int step = 0; step < 5; ++step) EXPECT_DOUBLE_EQ(schedule.factor(step), (step + 1) / 5.0);
  EXPECT_DOUBLE_EQ(schedule.factor(5), 1);
  EXPECT_NEAR(schedule.factor(10), 0.5, 1e-15);
}

TEST(Schedule, StaysAtTheFullRateWhenConstant) {
  const Schedule schedule{.kind = ScheduleKind::kConstant, .warmup = 2, .total = 10};
  EXPECT_DOUBLE_EQ(schedule.factor(0), 0.5);
  for (int step = 1; step < 10; ++step) EXPECT_EQ(schedule.factor(step), 1);
}

TEST(Schedule, MayWarmUpForTheWholeRun) {
  const Schedule schedule{.kind = ScheduleKind::kCosine, .warmup = 4, .total = 4};
  EXPECT_DOUBLE_EQ(schedule.factor(3), 1);
}

}  // namespace
}  // namespace gala
