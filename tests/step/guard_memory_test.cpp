// What a guard remembers: its reference, what it forgets, and its saved state.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gala/base/error.h"
#include "gala/step/guard.h"
#include "tests/step/guard_batches.h"

namespace gala {
namespace {

TEST(Guard, KeepsTheFirstHorizonAsReference) {
  Guard guard("warn:horizon=4,every=1", 2);
  guard.observe({.predictions = {0, 0, 1, 1}});
  for (int i = 0; i < 5; ++i) {
    guard.observe({.predictions = {0, 0, 0, 0}});
    EXPECT_NEAR(guard.judge(0).drift, 0.5, 1e-15);
  }
}

TEST(Guard, ForgetsTheRecentAnswersOrEverything) {
  Guard guard("warn:horizon=4,every=1,diversity=0.6", 2);
  guard.observe({.predictions = {0, 0, 1, 1}});
  guard.forget(/*all=*/false);
  EXPECT_FALSE(guard.observe({.predictions = {0, 0, 0}}));
  EXPECT_TRUE(guard.observe({.predictions = {0}}));
  const HealthEvent event = guard.judge(0);
  EXPECT_EQ(event.histogram, (std::vector<std::int64_t>{4, 0}));
  EXPECT_EQ(event.batch, 3);
  EXPECT_EQ(event.reasons, std::vector<std::string>{"diversity"});  // the reference has two
  guard.forget(/*all=*/true);
  EXPECT_TRUE(guard.observe({.predictions = {0, 0, 0, 0}}));
  EXPECT_TRUE(guard.judge(0).reasons.empty());  // the reference is one class now
  EXPECT_EQ(guard.judge(0).batch, 1);
}

TEST(Guard, GoesOnFromASavedState) {
  for (const int before : {0, 1, 3, 17}) {
    Guard straight("warn:horizon=50,every=2", 4), first("warn:horizon=50,every=2", 4);
    Random random(7, "guard");
    std::vector<BatchHealth> stream;
    for (int i = 0; i < 40; ++i) {
      stream.push_back(even_batch(random, 13, 4, random.uniform()));
      stream.back().update_norm = random.uniform();
      stream.back().refused = static_cast<std::int64_t>(random.below(2));
      stream.back().steps = 1;
      stream.back().not_finite = static_cast<std::int64_t>(random.below(2));
      stream.back().lost = random.below(4) == 0;
    }
    for (int i = 0; i < before; ++i) {
      EXPECT_EQ(straight.observe(stream[i]), first.observe(stream[i]));
      compare(straight, i, 20, 4);
      compare(first, i, 20, 4);
    }
    Guard second("warn:horizon=50,every=2", 4);
    second.observe({.predictions = {3, 3}, .entropy_sum = 9});
    compare(second, 7, 40, 4);
    second.load(nlohmann::json::parse(first.save().dump()));
    for (std::size_t i = before; i < stream.size(); ++i) {
      const bool due = straight.observe(stream[i]);
      ASSERT_EQ(second.observe(stream[i]), due);
      if (!due) continue;
      const double displacement = random.uniform(0.0, 0.4);
      ASSERT_EQ(second.asks_source(displacement), straight.asks_source(displacement));
      EXPECT_EQ(second.judge(displacement).to_json(), straight.judge(displacement).to_json());
    }
  }
}

TEST(Guard, KnowsALongClumpFromASavedState) {
  Guard first("warn:horizon=100,every=1", 4), second("warn:horizon=100,every=1", 4);
  Random random(12, "guard");
  for (int i = 0; i < 10; ++i) first.observe(even_batch(random, 100, 4));
  for (int i = 0; i < 3; ++i) first.observe(constant_batch(100, 1));
  second.load(nlohmann::json::parse(first.save().dump()));
  compare(second, 40, 80, 4);  // 1/3: less than a half, and enough in a clump
  EXPECT_EQ(second.judge(0).reasons, std::vector<std::string>{"diversity"});
}

TEST(Guard, RefusesAStateOfAnotherNumberOfClasses) {
  for (const int answers : {2, 8}) {  // before and after the reference is there
    Guard saved("warn:horizon=4", 5);
    saved.observe(constant_batch(answers, 4));
    Guard smaller("warn:horizon=4", 3);
    EXPECT_THROW(smaller.load(saved.save()), Error) << answers;
  }
  Guard saved("warn:horizon=4", 3);
  saved.observe(constant_batch(8, 2));
  Guard larger("warn:horizon=4", 5);
  EXPECT_THROW(larger.load(saved.save()), Error);
}

}  // namespace
}  // namespace gala
