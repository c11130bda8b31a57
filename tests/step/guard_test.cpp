#include "gala/step/guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "gala/base/error.h"
#include "gala/step/health.h"
#include "tests/step/guard_batches.h"

namespace gala {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string message_of(const std::string& text) {
  try {
    const Guard guard(text, 3);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Guard, LeavesAHealthyStreamAlone) {
  Guard guard("warn:horizon=200,every=4", 5);
  Random random(1, "guard");
  int judgements = 0;
  for (int batch = 1; batch <= 100; ++batch) {
    if (!guard.observe(even_batch(random, 32, 5))) continue;
    const HealthEvent event = guard.judge(0.01);
    ++judgements;
    EXPECT_EQ(event.batch, batch);
    EXPECT_FALSE(event.collapsed);
    EXPECT_TRUE(event.reasons.empty());
    EXPECT_EQ(event.action, "none");
    EXPECT_GT(event.effective_classes, 4.5);
    EXPECT_LE(event.effective_classes, 5 + 1e-12);
    EXPECT_NEAR(event.entropy, 1.0, 1e-12);
    EXPECT_LT(event.drift, 0.2);
    EXPECT_EQ(event.to_json().at("event"), "healthy");
  }
  EXPECT_EQ(judgements, 24);  // batches 8, 12, ..., 100: the first horizon is full after batch 7
}

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

TEST(Guard, MeasuresDiversityAndDriftByTheirFormulas) {
  Guard guard("warn:horizon=8,every=1,diversity=0.7", 4);
  guard.observe({.predictions = {0, 0, 1, 1, 2, 2, 3, 3}, .entropy_sum = 8});
  EXPECT_DOUBLE_EQ(guard.judge(0).effective_classes, 4.0);
  guard.observe({.predictions = {0, 0, 0, 0, 0, 0, 1, 1}, .entropy_sum = 4});
  const HealthEvent event = guard.judge(0);
  const double entropy = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  EXPECT_NEAR(event.effective_classes, std::exp(entropy), 1e-12);  // 1.755 of 4, below 0.7
  EXPECT_EQ(event.reasons, std::vector<std::string>{"diversity"});
  EXPECT_NEAR(event.drift, 0.5, 1e-12);  // (0.5 + 0 + 0.25 + 0.25) / 2
  EXPECT_DOUBLE_EQ(event.entropy, 0.5);
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

TEST(Guard, TakesLowEntropyAsASignAlone) {
  Guard guard("stop:horizon=30,every=1", 3);
  Random random(4, "guard");
  for (int i = 0; i < 6; ++i) guard.observe(even_batch(random, 10, 3, 0.8));
  for (int i = 0; i < 3; ++i) guard.observe(even_batch(random, 10, 3, 0.01));
  const HealthEvent event = guard.judge(0);
  EXPECT_FALSE(event.collapsed);
  EXPECT_EQ(event.reasons, std::vector<std::string>{"entropy"});
  EXPECT_EQ(event.action, "none");
  EXPECT_EQ(event.to_json().at("event"), "sign");
  for (int i = 0; i < 3; ++i) guard.observe(even_batch(random, 10, 3, 0.02));  // above 0.02 * 0.8
  EXPECT_TRUE(guard.judge(0).reasons.empty());
}

/// The newest batches that hold at least `horizon` answers, counted anew.
struct Recount {
  std::vector<std::int64_t> histogram;
  double entropy = 0;

  Recount(const std::vector<BatchHealth>& stream, std::int64_t horizon, std::int64_t classes)
      : histogram(static_cast<std::size_t>(classes), 0) {
    std::int64_t answers = 0;
    for (std::size_t i = stream.size(); i-- > 0 && answers < horizon;) {
      for (const std::int64_t prediction : stream[i].predictions) ++histogram[prediction];
      answers += static_cast<std::int64_t>(stream[i].predictions.size());
      entropy += stream[i].entropy_sum;
    }
    entropy /= static_cast<double>(answers);
  }
};

TEST(Guard, CountsTheNewestAnswersWhateverTheBatchSize) {
  for (const std::int64_t horizon : {1, 7, 32, 33, 100, 500}) {
    for (const int size : {1, 8, 32, 200, 0}) {  // 0: another size each time
      Guard guard(fmt::format("warn:horizon={},every=1", horizon), 6);
      Random random(5, "guard",
                    {static_cast<std::uint64_t>(horizon), static_cast<std::uint64_t>(size)});
      std::vector<BatchHealth> stream;
      std::int64_t answers = 0;
      const std::int64_t batches = size == 1 ? 700 : 80;
      for (std::int64_t i = 0; i < batches; ++i) {
        const int count = size ? size : static_cast<int>(random.below(50));
        stream.push_back(even_batch(random, count, 6, random.uniform()));
        answers += count;
        ASSERT_EQ(guard.observe(stream.back()), answers >= horizon) << horizon << " " << size;
        if (answers < horizon) continue;
        const HealthEvent event = guard.judge(0);
        const Recount expected(stream, horizon, 6);
        ASSERT_EQ(event.histogram, expected.histogram) << horizon << " " << size;
        ASSERT_NEAR(event.entropy, expected.entropy, 1e-12);
      }
      EXPECT_GE(answers, horizon);
    }
  }
}

TEST(Guard, ReportsTheLargestUpdateAndTheRefusedStepsSinceTheLastJudgement) {
  Guard guard("warn:horizon=1,every=3", 2);
  for (const double norm : {0.1, 0.7, 0.2}) {
    guard.observe({.predictions = {0}, .update_norm = norm, .refused = 2});
  }
  const HealthEvent event = guard.judge(0);
  EXPECT_EQ(event.update_norm, 0.7);
  EXPECT_EQ(event.refused, 6);
  EXPECT_EQ(guard.judge(0).update_norm, 0.0);
  EXPECT_EQ(guard.judge(0).refused, 0);
}

TEST(Guard, IsNotPoisonedByAnswersThatAreNotNumbers) {
  Guard guard("warn:horizon=20,every=1", 3);
  Random random(6, "guard");
  for (int i = 0; i < 4; ++i) guard.observe(even_batch(random, 10, 3, 0.5));
  for (const double bad : {kNan, std::numeric_limits<double>::infinity()}) {
    BatchHealth batch = even_batch(random, 10, 3);
    batch.entropy_sum = bad;
    guard.observe(batch);
    EXPECT_TRUE(std::isfinite(guard.judge(0).entropy));
  }
  for (int i = 0; i < 2; ++i) guard.observe(even_batch(random, 10, 3, 0.5));
  EXPECT_NEAR(guard.judge(0).entropy, 0.5, 1e-12);
}

void expect_alarm_at_once(const BatchHealth& bad, const std::string& reason) {
  Guard guard("stop:horizon=1000,every=7", 2);
  EXPECT_FALSE(guard.observe({.predictions = {0, 1}, .steps = 1}));
  ASSERT_TRUE(guard.observe(bad)) << reason;
  const HealthEvent event = guard.judge(0);
  EXPECT_TRUE(event.collapsed);
  EXPECT_EQ(event.reasons, std::vector<std::string>{reason});
  EXPECT_EQ(event.action, "stop");
  // While it lasts it is told again every few batches, not at each.
  for (int batch = 3; batch <= 21; ++batch) {
    EXPECT_EQ(guard.observe(bad), batch % 7 == 0) << reason << ' ' << batch;
    if (batch % 7 == 0) {
      EXPECT_EQ(guard.judge(0).reasons, std::vector<std::string>{reason});
    }
  }
  // Then it is over, and begins again.
  EXPECT_FALSE(guard.observe({.predictions = {0, 1}, .steps = 1}));
  EXPECT_TRUE(guard.observe(bad)) << reason;
  // A rollback is a new beginning, too.
  guard.forget(/*all=*/false);
  EXPECT_TRUE(guard.observe(bad)) << reason;
}

TEST(Guard, RaisesAnAlarmAtOnceWhateverTheHorizon) {
  expect_alarm_at_once({.predictions = {0, kNoClass}, .not_finite = 1}, "not finite");
  expect_alarm_at_once({.predictions = {0, 1}, .steps = 1, .lost = true}, "lost");
  expect_alarm_at_once({.predictions = {0, 1}, .refused = 3, .steps = 3}, "refused");
}

TEST(Guard, RefusedStepsAreAnAlarmOnlyInARowAndWithoutAnExcuse) {
  Guard guard("warn:horizon=1000", 2);
  const BatchHealth refused{.predictions = {0, 1}, .refused = 1, .steps = 1};
  const BatchHealth healthy{.predictions = {0, 1}, .steps = 1};
  const BatchHealth excused{.predictions = {0, kNoClass}, .refused = 1, .steps = 1, .broken = 1};
  const BatchHealth answered{.predictions = {0, 1}};  // nothing was adapted
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(guard.observe(refused));
    EXPECT_FALSE(guard.observe(refused));
    EXPECT_FALSE(guard.observe(excused));
    EXPECT_FALSE(guard.observe(healthy));
  }
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(guard.observe(excused));
  EXPECT_FALSE(guard.observe(refused));
  EXPECT_FALSE(guard.observe(answered));
  EXPECT_FALSE(guard.observe(refused));
  EXPECT_TRUE(guard.observe(refused));
}

TEST(Guard, CountsOnlyAnswersThatAreFinite) {
  Guard guard("warn:horizon=4,every=1", 2);
  EXPECT_FALSE(guard.observe({.predictions = {0, kNoClass, 1, kNoClass}, .broken = 2}));
  EXPECT_FALSE(guard.observe({.predictions = {kNoClass, kNoClass}, .broken = 2}));
  EXPECT_TRUE(guard.observe({.predictions = {0, kNoClass, 1}, .broken = 1}));
  EXPECT_EQ(guard.judge(0).histogram, (std::vector<std::int64_t>{2, 2}));
  EXPECT_FALSE(guard.judge(0).collapsed);
}

TEST(Guard, NeverJudgesWhenOff) {
  Guard guard("off:horizon=1,every=1", 2);
  EXPECT_EQ(guard.action(), GuardAction::kOff);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(guard.observe(constant_batch(32, 0)));
}

TEST(Guard, RefusesWordsItDoesNotKnow) {
  EXPECT_EQ(message_of("wran"),
            "unknown guard \"wran\" (did you mean \"warn\"? known: off, warn, stop, rollback)");
  EXPECT_EQ(
      message_of("warn:horizont=3"),
      "guard warn has no option \"horizont\" (did you mean \"horizon\"? known: horizon, every, "
      "diversity, entropy, displacement, to)");
  EXPECT_EQ(message_of("rollback:to=start"),
            "guard rollback: option to cannot be \"start\" (expected source|healthy)");
  EXPECT_EQ(message_of("warn:horizon=0"), "guard: horizon must be at least 1");
  EXPECT_EQ(message_of("warn:every=0"), "guard: every must be at least 1");
  EXPECT_EQ(message_of("warn:diversity=1.1"), "guard: diversity must lie in [0, 1]");
  EXPECT_EQ(message_of("warn:entropy=-0.1"), "guard: entropy must lie in [0, 1]");
  EXPECT_EQ(message_of("warn:displacement=0"), "guard: displacement must be above 0");
  EXPECT_EQ(message_of("warn"), "no error");
}

}  // namespace
}  // namespace gala
