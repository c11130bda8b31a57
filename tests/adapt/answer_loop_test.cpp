#include "gala/adapt/answer_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "gala/base/error.h"
#include "gala/base/stopwatch.h"
#include "gala/model/classes.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

const MethodOptions kAll = {.loss = "entropy", .select = "all", .optimizer = "adam:rate=0.01"};

/// Batches 1, 2, ... of the toy stream, one for each segment given.
class ToyBatches {
 public:
  explicit ToyBatches(std::vector<std::int32_t> segments) : segments_(std::move(segments)) {}

  std::optional<Batch> next() {
    ++asked;
    if (given_ == segments_.size()) return std::nullopt;
    Batch batch;
    batch.number = static_cast<std::int64_t>(given_);
    batch.images = toy_images(batch.number + 1);
    batch.labels = {0, 1, 2, -1};
    batch.positions = {0, 1, 2, 3};
    batch.domains = {0, 0, 0, 0};
    batch.segment = segments_[given_++];
    return batch;
  }
  NextBatch source() {
    return [this] { return next(); };
  }

  int asked = 0;

 private:
  std::vector<std::int32_t> segments_;
  std::size_t given_ = 0;
};

/// The logits of a whole loop.
std::vector<at::Tensor> logits_of(Adapter& adapter, std::vector<std::int32_t> segments,
                                  const Borders& borders = {}) {
  ToyBatches batches(std::move(segments));
  std::vector<at::Tensor> logits;
  const auto keep = [&](const Answered& answered) {
    logits.push_back(answered.answer.logits.clone());
    return true;
  };
  EXPECT_TRUE(for_each_answer(batches.source(), adapter, keep, borders));
  return logits;
}

TEST(AnswerLoop, HandsOnWhatTheAdapterAnswers) {
  const auto model = toy_model(), twin = toy_model();
  Adapter adapter(*model, kAll), alone(*twin, kAll);
  ToyBatches batches({0, 0, 0});
  std::int64_t count = 0;
  const bool whole = for_each_answer(batches.source(), adapter, [&](const Answered& answered) {
    EXPECT_EQ(answered.batch.number, count++);
    EXPECT_EQ(answered.adapter, 0U);
    const Answer expected = alone.answer(toy_images(count));
    EXPECT_TRUE(same_bytes(answered.answer.logits, expected.logits));
    std::int64_t right = 0;
    for (const std::int64_t i : {0, 1, 2}) {
      right += expected.predictions[static_cast<std::size_t>(i)] == i;
    }
    EXPECT_EQ(answered.tally, (Tally{4, 3, right}));
    return true;
  });
  EXPECT_TRUE(whole);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(batches.asked, 4);
}

TEST(AnswerLoop, EndsWhereTheSinkSaysSo) {
  const auto model = toy_model();
  Adapter adapter(*model, kAll);
  ToyBatches batches({0, 0, 0});
  EXPECT_FALSE(for_each_answer(batches.source(), adapter,
                               [](const Answered& answered) { return answered.batch.number < 1; }));
  EXPECT_EQ(adapter.totals().batches, 2);
  EXPECT_EQ(batches.asked, 2) << "no batch is loaded for nothing";
}

TEST(AnswerLoop, LetsErrorsThrough) {
  const auto model = toy_model();
  Adapter adapter(*model, kAll);
  ToyBatches batches({0, 0, 0});
  int taken = 0;
  const auto next = [&]() -> std::optional<Batch> {
    if (batches.asked == 2) fail("unreadable");
    return batches.next();
  };
  const auto count = [&](const Answered&) { return ++taken > 0; };
  EXPECT_THROW(for_each_answer(next, adapter, count), Error);
  EXPECT_EQ(taken, 2);
}

TEST(AnswerLoop, BeginsASegmentWithTheSourceModelWhereAsked) {
  const auto model = toy_model(), carried = toy_model(), fresh = toy_model();
  Adapter restarted(*model, kAll), other(*carried, kAll), alone(*fresh, kAll);
  const auto with = logits_of(restarted, {0, 0, 1, 1}, {.restart = true});
  const auto without = logits_of(other, {0, 0, 1, 1});
  EXPECT_TRUE(same_bytes(with[1], without[1]));
  EXPECT_FALSE(same_bytes(with[2], without[2]));
  EXPECT_TRUE(same_bytes(with[2], alone.answer(toy_images(3)).logits));
  EXPECT_TRUE(same_bytes(with[3], alone.answer(toy_images(4)).logits));
  EXPECT_EQ(restarted.totals().batches, 4) << "the counts go on";
}

TEST(AnswerLoop, GoesOnInTheSegmentWhereItWas) {
  for (const std::int32_t segment : {0, 1}) {
    const auto model = toy_model(), twin = toy_model();
    Adapter adapter(*model, kAll), straight(*twin, kAll);
    for (const int number : {8, 9}) adapter.answer(toy_images(number));
    for (const int number : {8, 9}) straight.answer(toy_images(number));
    const auto logits = logits_of(adapter, {1}, {.restart = true, .segment = segment});
    EXPECT_EQ(same_bytes(logits[0], straight.answer(toy_images(1)).logits), segment == 1);
  }
}

TEST(AnswerLoop, LetsSeveralAnswerEachBatchInTurn) {
  const auto one = toy_model(1), two = toy_model(2), twin = toy_model(2);
  Adapter first(*one, kAll), second(*two, kAll), alone(*twin, kAll);
  const std::vector<Adapter*> adapters = {&first, &second};
  ToyBatches batches({0, 0});
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  const auto take = [&](const Answered& answered) {
    order.emplace_back(answered.batch.number, answered.adapter);
    if (answered.adapter == 0) return true;
    EXPECT_EQ(answered.times.load, 0) << "a batch is loaded once";
    EXPECT_TRUE(same_bytes(answered.answer.logits, alone.answer(answered.batch.images).logits));
    return true;
  };
  EXPECT_TRUE(for_each_answer(batches.source(), adapters, take));
  EXPECT_EQ(order, (decltype(order){{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(batches.asked, 3);
}

TEST(AnswerLoop, TimesEverythingButTheSink) {
  const auto model = toy_model();
  MethodOptions options = kAll;
  options.inner_steps = 2;
  Adapter adapter(*model, options);
  ToyBatches batches({0, 0, 0});
  constexpr std::chrono::milliseconds kLoads(5), kSinks(20);
  AnswerTimes times;
  double steps = 0;
  const auto next = [&] {
    std::this_thread::sleep_for(kLoads);
    return batches.next();
  };
  Stopwatch watch;
  for_each_answer(next, adapter, [&](const Answered& answered) {
    EXPECT_GE(answered.times.load, kLoads.count());
    EXPECT_EQ(answered.answer.steps.size(), 2U);
    for (const StepRecord& step : answered.answer.steps) steps += step.times.total();
    times += answered.times;
    std::this_thread::sleep_for(kSinks);
    return true;
  });
  EXPECT_LE(times.load + times.answer + 3 * kSinks.count(), watch.lap());
  EXPECT_GT(steps, 0);
  EXPECT_NEAR(times.steps.total(), steps, 1e-9 * steps);
  EXPECT_LE(times.steps.total(), times.answer);
}

TEST(StepTimes, AddUpPartByPart) {
  StepTimes sum{1, 2, 3, 4, 5, 6};
  sum += {10, 20, 30, 40, 50, 60};
  EXPECT_EQ((std::vector{sum.copy, sum.forward, sum.backward, sum.measure, sum.select, sum.apply}),
            (std::vector<double>{11, 22, 33, 44, 55, 66}));
}

TEST(AnswerLoop, ANetworkAnswersAsItIsAndNothingMoves) {
  const auto model = toy_model(1, "running:momentum=0.5"),
             twin = toy_model(1, "running:momentum=0.5");
  ToyBatches batches({0, 0});
  for_each_answer(batches.source(), *model, [&](const Answered& answered) {
    // Of the first batch's statistics nothing is left for the second.
    const at::Tensor expected = twin->forward(toy_images(answered.batch.number + 1), false).logits;
    EXPECT_TRUE(same_bytes(answered.answer.logits, expected));
    EXPECT_FALSE(answered.answer.logits.requires_grad());
    EXPECT_EQ(answered.answer.predictions, predictions_of(expected));
    EXPECT_EQ(answered.tally.images, 4);
    EXPECT_TRUE(answered.answer.steps.empty());
    return true;
  });
  EXPECT_EQ(batches.asked, 3);
}

TEST(AnswerLoop, ANetworkLeavesUnansweredWhatIsNotFinite) {
  const auto model = toy_model(1, "source");
  ToyBatches batches({0});
  const auto next = [&] {
    std::optional<Batch> batch = batches.next();
    if (batch) batch->images[1].fill_(std::numeric_limits<float>::quiet_NaN());
    return batch;
  };
  for_each_answer(next, *model, [](const Answered& answered) {
    EXPECT_EQ(answered.answer.unanswered, std::vector<std::int64_t>{1});
    EXPECT_EQ(answered.answer.predictions[1], kNoClass);
    return true;
  });
  EXPECT_EQ(batches.asked, 2);
}

}  // namespace
}  // namespace gala
