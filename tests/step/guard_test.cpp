#include "gala/step/guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
