#include "gala/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace gala {
namespace {

TEST(Random, DependsOnSeedNameAndIndicesOnly) {
  EXPECT_EQ(Random(1, "a", {2}).next(), Random(1, "a", {2}).next());
  EXPECT_NE(Random(1, "a", {2}).next(), Random(2, "a", {2}).next());
  EXPECT_NE(Random(1, "a", {2}).next(), Random(1, "b", {2}).next());
  EXPECT_NE(Random(1, "a", {2}).next(), Random(1, "a", {3}).next());
  EXPECT_NE(Random(1, "a", {2, 3}).next(), Random(1, "a", {3, 2}).next());
}

TEST(Random, GoesOnFromItsState) {
  Random first(3, "x");
  first.next();
  Random second(4, "y");
  second.set_state(first.state());
  EXPECT_EQ(first.next(), second.next());
}

TEST(Random, DrawsUniformly) {
  Random random(5, "uniform");
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  double chi2 = 0;
  for (int count : counts) chi2 += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi2, 22.5);  // 6 degrees of freedom, p = 0.001
}

TEST(Random, ShufflesIntoEveryOrderEquallyOften) {
  constexpr int kDraws = 24'000;
  std::map<std::array<int, 4>, int> counts;
  Random random(1, "shuffle");
  for (int i = 0; i < kDraws; ++i) {
    std::array<int, 4> order = {0, 1, 2, 3};
    random.shuffle(order);
    ++counts[order];
  }
  ASSERT_EQ(counts.size(), 24U);
  double chi2 = 0;
  for (const auto& [order, count] : counts) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 49.7);  // 23 degrees of freedom, p = 0.001
}

TEST(Random, HasTheMomentsOfANormal) {
  Random random(6, "normal");
  double sum = 0, square = 0, fourth = 0;
  const int n = 200000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x, square += x * x, fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(square / n, 1, 0.015);
  EXPECT_NEAR(fourth / n, 3, 0.1);
}

}  // namespace
}  // namespace gala
