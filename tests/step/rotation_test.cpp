#include "gala/step/rotation.h"

#include <gtest/gtest.h>

namespace gala {
namespace {

StepRecord step(std::int64_t window_step, std::vector<double> weights, bool refused = false) {
  StepRecord record;
  record.window_step = window_step;
  record.refused = refused;
  if (refused) return record;
  for (const double weight : weights) record.layers.push_back({.weight = weight});
  return record;
}

TEST(RotationCount, CountsChoicesThatComeAgainWithinAWindow) {
  RotationCount count(3);
  count.take(step(1, {0.01, 0.01, 0.01}));
  count.take(step(2, {0, 1, 0}));
  count.take(step(3, {}, /*refused=*/true));
  count.take(step(3, {0, 1, 0}));
  count.take(step(4, {0, 0, 0}));
  count.take(step(1, {0.01, 0.01, 0.01}));
  count.take(step(2, {0, 1, 0}));
  EXPECT_EQ(count.total().choices, 3);
  EXPECT_EQ(count.total().repeats, 1);
  EXPECT_NEAR(count.total().by_chance, 1.0 / 3, 1e-12);
  EXPECT_EQ(count.total().repeats_text(), "1 of 3 choices (33.3 %; by chance 11.1 %)");
}

TEST(RotationCount, GoesOnInsideAWindow) {
  RotationCount count(3), straight(3);
  for (RotationCount* one : {&count, &straight}) one->take(step(2, {1, 0, 0}));
  RotationCount resumed(3);
  resumed.load(count.save());
  for (RotationCount* one : {&resumed, &straight}) one->take(step(3, {1, 0, 0}));
  EXPECT_EQ(resumed.total(), straight.total());
  EXPECT_EQ(resumed.total().repeats, 1);
}

}  // namespace
}  // namespace gala
