// What a guard makes of the source's answers: when it asks for them, and what of them is a collapse.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "gala/step/guard.h"
#include "tests/step/guard_batches.h"

namespace gala {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Guard, AsksTheSourceWhereFewClassesAreInUse) {
  Guard guard("stop:horizon=64,every=1", 4);
  Random random(2, "guard");
  for (int i = 0; i < 8; ++i) guard.observe(even_batch(random, 16, 4));
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(guard.judge(0).collapsed);
  EXPECT_FALSE(guard.asks_source(0)) << "the fifth judgement, near the source";
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(guard.observe(constant_batch(16, 2)));
  ASSERT_TRUE(guard.asks_source(0));
  HealthEvent event = guard.judge(0);
  EXPECT_FALSE(event.collapsed) << "nobody has answered yet";
  EXPECT_EQ(event.reasons, std::vector<std::string>{"diversity"});
  EXPECT_EQ(event.histogram, (std::vector<std::int64_t>{0, 0, 64, 0}));
  EXPECT_DOUBLE_EQ(event.effective_classes, 1.0);
  const std::vector<std::int64_t> ours(60, 2);
  std::vector<std::int64_t> theirs = ours;
  std::fill(theirs.begin() + 27, theirs.end(), 1);
  guard.compare(ours, theirs);  // a stream of class 2, in which the source sees it half the time
  event = guard.judge(0);
  EXPECT_NEAR(event.agreement.value(), (27.0 / 60 - 0.25) / 0.75, 1e-12);
  EXPECT_FALSE(event.collapsed);
  EXPECT_EQ(event.action, "none");
  guard.compare(ours, compared(0, 60, 4).theirs);  // it sees all four
  event = guard.judge(0);
  EXPECT_NEAR(event.agreement.value(), 0, 1e-12);
  EXPECT_TRUE(event.collapsed);
  EXPECT_EQ(event.reasons, (std::vector<std::string>{"disagreement", "diversity"}));
  EXPECT_EQ(event.action, "stop");
  EXPECT_EQ(event.to_json().at("event"), "collapse");
}

/// What knows nothing of the images has this in common with a source that often says the same.
TEST(Guard, TakesChanceFromWhatTheSourceSays) {
  Guard guard("warn:horizon=100,every=1", 4);
  guard.observe({.predictions = std::vector<std::int64_t>(100, 0)});
  std::vector<std::int64_t> theirs(100, 0);
  for (int i = 0; i < 60; ++i) theirs[i] = 3;
  guard.compare(std::vector<std::int64_t>(100, 3), theirs);
  // Of a hundred answers of the source's, and a hundred even ones, 60 + 25 are of class 3.
  EXPECT_NEAR(guard.judge(1).agreement.value(), (0.6 - 0.425) / (1 - 0.425), 1e-12);
  std::fill(theirs.begin(), theirs.end(), 3);
  for (int i = 0; i < 9; ++i) guard.compare(theirs, theirs);
  EXPECT_NEAR(guard.judge(1).agreement.value(), 1, 1e-12);
  std::fill(theirs.begin() + 70, theirs.end(), 0);
  guard.compare(std::vector<std::int64_t>(100, 3), theirs);
  // Chance is a half at most.
  EXPECT_NEAR(guard.judge(1).agreement.value(), (0.7 - 0.5) / 0.5, 1e-12);
}

TEST(Guard, FindsParametersThatWentFarAndAnswerOtherwise) {
  Guard guard("rollback:to=healthy,horizon=10,every=1,displacement=0.25", 3);
  Random random(3, "guard");
  guard.observe(even_batch(random, 10, 3));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(guard.judge(0.25).collapsed);
  compare(guard, /*agreed=*/4, /*images=*/12, /*classes=*/3);
  EXPECT_FALSE(guard.asks_source(0.25));
  EXPECT_FALSE(guard.judge(0.25).collapsed) << "near: what the source said before does not count";
  for (int i = 0; i < 4; ++i) guard.judge(0);
  EXPECT_TRUE(guard.asks_source(0.26));
  const HealthEvent event = guard.judge(0.26);
  EXPECT_TRUE(event.collapsed);
  EXPECT_EQ(event.reasons, (std::vector<std::string>{"disagreement", "displacement"}));
  EXPECT_EQ(event.displacement, 0.26);
  EXPECT_LT(event.agreement.value(), 0.05);
  EXPECT_EQ(event.to_json().at("agreement"), event.agreement.value());
  EXPECT_EQ(event.action, "rollback to healthy");
  EXPECT_TRUE(guard.asks_source(kNan));
  compare(guard, 12, 12, 3);
  EXPECT_TRUE(guard.judge(kNan).collapsed);
  EXPECT_EQ(Guard("rollback", 3).options().to, RollbackTarget::kSource);
}

/// Answers whose neighbours are of one class, in clumps of `length`.
BatchHealth clumped_batch(int size, int classes, int length) {
  BatchHealth batch;
  for (int i = 0; i < size; ++i) batch.predictions.push_back(i / length % classes);
  return batch;
}

TEST(Guard, AsksForLessAgreementWhereNeighboursAreAlike) {
  Random random(8, "guard");
  for (const auto& [batch, in_clumps] : {std::pair{even_batch(random, 4000, 4), false},
                                         {clumped_batch(4000, 4, 1), false},
                                         {clumped_batch(4000, 4, 2), true},
                                         {clumped_batch(4000, 4, 1000), true}}) {
    Guard guard("warn:horizon=4000,every=1", 4);
    guard.observe(batch);
    compare(guard, 22, 40, 4);  // (22/40 - 1/4) / (3/4) = 0.4
    EXPECT_EQ(guard.judge(0).collapsed, !in_clumps);
    compare(guard, 16, 40, 4);  // 0.2
    EXPECT_TRUE(guard.judge(0).collapsed);
    compare(guard, 26, 40, 4);  // 0.53
    EXPECT_FALSE(guard.judge(0.3).collapsed);
  }
}

TEST(Guard, KnowsALongClumpByWhatCameBeforeIt) {
  Guard guard("warn:horizon=100,every=1", 4);
  Random random(10, "guard");
  for (int i = 0; i < 10; ++i) guard.observe(even_batch(random, 100, 4));
  for (int i = 0; i < 3; ++i) guard.observe(constant_batch(100, 1));
  compare(guard, 40, 80, 4);  // 1/3
  EXPECT_EQ(guard.judge(0).reasons, std::vector<std::string>{"diversity"});
  for (int i = 0; i < 60; ++i) guard.observe(constant_batch(100, 1));
  EXPECT_EQ(guard.judge(0).reasons, (std::vector<std::string>{"disagreement", "diversity"}))
      << "what never ends is no clump";
}

/// What has collapsed to few classes and goes on to mix them is no stream in clumps, or not for long.
TEST(Guard, FewClassesAreNoClump) {
  Guard guard("warn:horizon=1000,every=1", 10);
  Random random(9, "guard");
  for (int i = 0; i < 20; ++i) guard.observe(even_batch(random, 100, 10));
  for (int i = 0; i < 20; ++i) guard.observe(even_batch(random, 100, 2));
  compare(guard, 150, 300, 10);  // (1/2 - 1/10) / (9/10) = 0.44
  EXPECT_EQ(guard.judge(0).reasons, (std::vector<std::string>{"disagreement", "diversity"}));
}

TEST(Guard, TakesFewClassesOfWhichAllAreSureForACollapse) {
  Guard guard("rollback:horizon=40,every=1", 4);
  Random random(11, "guard");
  guard.observe(even_batch(random, 40, 4, 0.5));
  guard.judge(0);
  guard.compare(std::vector<std::int64_t>(40, 1), std::vector<std::int64_t>(40, 1));
  guard.observe(constant_batch(40, 1, 0.02));
  EXPECT_FALSE(guard.judge(0).collapsed);
  guard.observe(constant_batch(40, 1, 0.0099));  // 0.02 * 0.5 = 0.01
  const HealthEvent event = guard.judge(0);
  EXPECT_TRUE(event.collapsed) << "although the source says the same";
  EXPECT_EQ(event.agreement, 1);
  EXPECT_EQ(event.reasons, (std::vector<std::string>{"diversity", "entropy"}));
  EXPECT_EQ(event.action, "rollback to source");
}

TEST(Guard, TakesDistanceAloneAsASign) {
  Guard guard("stop:horizon=100,every=10", 4);
  Random random(9, "guard");
  std::optional<double> agreement;
  for (int batch = 1; batch <= 20000; ++batch) {
    if (!guard.observe(even_batch(random, 16, 4))) continue;
    const double displacement = 1e-4 * batch;  // ever farther
    if (guard.asks_source(displacement)) compare(guard, /*agreed=*/14, /*images=*/16, 4);
    const HealthEvent event = guard.judge(displacement);
    ASSERT_FALSE(event.collapsed) << batch;
    ASSERT_EQ(event.reasons.size(), displacement > 0.2 ? 1U : 0U) << batch;
    agreement = event.agreement;
  }
  EXPECT_NEAR(agreement.value(), (14.0 / 16 - 0.25) / 0.75, 0.01);
}

/// A collapse that is over when the reference is there, and nothing moves far.
TEST(Guard, AsksTheSourceAtOnceAndThenEverMoreRarely) {
  Guard guard("stop:horizon=32,every=1", 4);
  std::vector<int> asked;
  for (int judgement = 1; judgement <= 100; ++judgement) {
    ASSERT_TRUE(guard.observe(constant_batch(32, 1)));
    if (guard.asks_source(0.01)) {
      asked.push_back(judgement);
      compare(guard, /*agreed=*/10, /*images=*/32, 4);
    }
    const HealthEvent event = guard.judge(0.01);
    EXPECT_EQ(event.collapsed, !asked.empty() && asked.back() == judgement) << judgement;
    EXPECT_EQ(event.reasons, event.collapsed ? std::vector<std::string>{"disagreement"}
                                             : std::vector<std::string>{});
  }
  EXPECT_EQ(asked, (std::vector<int>{1, 2, 4, 8, 16, 32, 64}));
  guard.forget(/*all=*/true);
  EXPECT_TRUE(guard.asks_source(0));
}

TEST(Guard, JudgesAgreementByTheNewestImagesBeyondChance) {
  Guard guard("warn:horizon=60,every=1", 5);
  for (int i = 0; i < 12; ++i) guard.observe({.predictions = {0, 1, 2, 3, 4}});
  EXPECT_FALSE(guard.judge(0.5).agreement) << "nobody asked the source yet";
  compare(guard, 20, 20, 5);
  EXPECT_FALSE(guard.judge(0.5).agreement) << "too few images";
  compare(guard, 12, 20, 5);
  // (32/40 - 1/5) / (1 - 1/5)
  EXPECT_NEAR(guard.judge(0.5).agreement.value(), 0.75, 1e-12);
  compare(guard, 13, 20, 5);  // the first 20 are forgotten: (25/40 - 1/5) / (1 - 1/5)
  HealthEvent event = guard.judge(0.5);
  EXPECT_NEAR(event.agreement.value(), 0.53125, 1e-12);
  EXPECT_FALSE(event.collapsed);
  compare(guard, 23, 40, 5);  // by themselves enough: (23/40 - 1/5) / (1 - 1/5)
  event = guard.judge(0.5);
  EXPECT_NEAR(event.agreement.value(), 0.46875, 1e-12);
  EXPECT_TRUE(event.collapsed);
  guard.forget(/*all=*/false);
  EXPECT_FALSE(guard.judge(0.5).agreement) << "a new beginning";
}

}  // namespace
}  // namespace gala
