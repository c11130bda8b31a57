// Images, parameters and steps that are not finite: who answers, what is counted, what the guard does.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gala/loss/entropy.h"
#include "gala/select/all.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

MethodOptions options_with(const std::string& select, const std::string& guard = "warn") {
  MethodOptions options;
  options.loss = "entropy";
  options.select = select;
  options.guard = guard;
  return options;
}

/// A rate at which the first step leaves nothing of the network.
MethodOptions ruinous(const std::string& guard, const std::string& select = "all") {
  MethodOptions options = options_with(select, guard);
  options.optimizer = "sgd:rate=1e38";
  return options;
}

at::Tensor with_bad_pixel(at::Tensor images, std::int64_t image, float value) {
  images[image][0][2][3] = value;
  return images;
}

bool finite(const at::Tensor& values) {
  return at::isfinite(values).all().item<bool>();
}

bool has(const HealthEvent& event, const std::string& reason) {
  return std::find(event.reasons.begin(), event.reasons.end(), reason) != event.reasons.end();
}

TEST(NotFinite, OneBrokenImageHasNoAnswerAndSpoilsNoOther) {
  for (const char* norm :
       {"source", "batch", "blend:weight=0.5", "running:momentum=0.2", "balanced:momentum=0.2"}) {
    for (const char* select : {"none", "all", "gala"}) {
      for (const float value : {kNan, kInfinite, -kInfinite}) {
        const std::string where = fmt::format("{} {} {}", norm, select, value);
        auto model = toy_model(1, norm);
        Adapter adapter(*model, options_with(select));
        for (int i = 1; i <= 3; ++i) adapter.answer(toy_images(i));
        const at::Tensor parameters = parameters_of(adapter);
        const Answer answer = adapter.answer(with_bad_pixel(toy_images(4), 1, value));
        EXPECT_EQ(answer.predictions[1], kNoClass) << where;
        EXPECT_EQ(answer.unanswered, Numbers{1}) << where;
        EXPECT_EQ(answer.from_source, Numbers{}) << where;
        for (const std::size_t other : {0, 2, 3}) {
          EXPECT_GE(answer.predictions[other], 0) << where;
          EXPECT_TRUE(finite(answer.logits[static_cast<std::int64_t>(other)])) << where;
        }
        EXPECT_EQ(adapter.totals().unanswered, 1) << where;
        EXPECT_EQ(adapter.totals().from_source, 0) << where;
        EXPECT_FALSE(answer.health && answer.health->collapsed)
            << "no fault of the model: " << where;
        EXPECT_TRUE(same_bytes(parameters, parameters_of(adapter))) << where;
        for (const Buffer& buffer : model->buffers()) EXPECT_TRUE(finite(buffer.value)) << where;
        EXPECT_TRUE(adapter.answer(toy_images(5)).unanswered.empty()) << where;
        EXPECT_EQ(adapter.totals().unanswered, 1) << where;
      }
    }
  }
}

TEST(NotFinite, BesideABrokenImageTheOthersAreAnsweredAsIfItWereNotThere) {
  auto model = toy_model(), other = toy_model();
  Adapter adapter(*model, options_with("none"));
  const Answer answer = adapter.answer(with_bad_pixel(toy_images(4), 0, kNan));
  const at::Tensor alone = other->forward(toy_images(4).slice(0, 1)).logits;
  EXPECT_TRUE(same_bytes(answer.logits.slice(0, 1), alone));
}

TEST(NotFinite, ABatchOfBrokenImagesHasNoAnswers) {
  for (const char* norm : {"source", "batch", "running"}) {
    for (const std::int64_t count : {1, 3}) {
      auto model = toy_model(1, norm);
      Adapter adapter(*model, options_with("all", "stop"));
      at::Tensor images = toy_images(1, count);
      for (std::int64_t i = 0; i < count; ++i) with_bad_pixel(images, i, kNan);
      const Answer answer = adapter.answer(images);
      EXPECT_EQ(answer.predictions, Numbers(static_cast<std::size_t>(count), kNoClass)) << norm;
      EXPECT_EQ(std::ssize(answer.unanswered), count);
      EXPECT_TRUE(answer.steps[0].refused);
      for (int i = 2; i < 8; ++i) adapter.answer(images);
      EXPECT_FALSE(adapter.stopped()) << "the images are to blame";
      EXPECT_TRUE(adapter.answer(toy_images(9)).unanswered.empty()) << norm;
    }
  }
}

TEST(NotFinite, ABrokenImageAloneLeavesRunningStatisticsAlone) {
  for (const char* norm : {"running:momentum=0.5", "balanced:momentum=0.5"}) {
    auto model = toy_model(1, norm);
    Adapter adapter(*model, options_with("none"));
    std::vector<at::Tensor> before;
    for (const Statistic& each : model->statistics()) before.push_back(each.value->clone());
    adapter.answer(with_bad_pixel(toy_images(1, 1), 0, kNan));
    const std::vector<Statistic> after = model->statistics();
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(same_bytes(before[i], *after[i].value)) << after[i].name;
    }
  }
}

TEST(NotFinite, TheSourceModelAnswersForARuinedOne) {
  for (const char* norm : {"source", "batch", "running"}) {
    auto model = toy_model(1, norm), source = toy_model(1, "source");
    Adapter adapter(*model, ruinous("off"));
    EXPECT_TRUE(adapter.answer(toy_images(1)).from_source.empty());  // before the first update
    const at::Tensor ruined = parameters_of(adapter);
    std::int64_t answered = 0;
    for (int i = 2; i <= 6; ++i) {
      const Answer answer = adapter.answer(toy_images(i));
      EXPECT_EQ(answer.from_source, (Numbers{0, 1, 2, 3})) << norm;
      EXPECT_TRUE(answer.unanswered.empty());
      EXPECT_FALSE(answer.health.has_value());
      EXPECT_TRUE(same_bytes(answer.logits, source->forward(toy_images(i)).logits)) << norm;
      EXPECT_TRUE(answer.steps[0].refused);
      answered += std::ssize(answer.from_source);
      EXPECT_EQ(adapter.totals().from_source, answered);
    }
    EXPECT_TRUE(same_bytes(ruined, parameters_of(adapter))) << "off changes nothing but answers";
  }
}

TEST(NotFinite, TheGuardWarnsAtOnceAndNotAtEveryBatch) {
  auto model = toy_model(), other = toy_model();
  Adapter watched(*model, ruinous("warn")), plain(*other, ruinous("off"));
  int events = 0;
  for (int i = 1; i <= 25; ++i) {
    const Answer answer = watched.answer(toy_images(i));
    EXPECT_TRUE(same_bytes(answer.logits, plain.answer(toy_images(i)).logits)) << "warns only";
    if (!answer.health) continue;
    ++events;
    EXPECT_TRUE(answer.health->collapsed);
    EXPECT_EQ(answer.health->action, "warn");
    if (i == 1) {
      EXPECT_TRUE(has(*answer.health, "lost"));
    }
    if (i > 1) {
      EXPECT_TRUE(has(*answer.health, "not finite"));
    }
    EXPECT_TRUE(i == 1 || i % 10 == 0) << i;
  }
  EXPECT_EQ(events, 3);  // batches 1, 10 and 20
}

TEST(NotFinite, TheGuardStopsAtOnce) {
  auto model = toy_model();
  Adapter adapter(*model, ruinous("stop"));
  EXPECT_EQ(adapter.answer(toy_images(1)).health->action, "stop");
  EXPECT_TRUE(adapter.stopped());
  for (int i = 2; i <= 5; ++i) {
    const Answer answer = adapter.answer(toy_images(i));
    EXPECT_TRUE(answer.steps.empty());
    EXPECT_TRUE(finite(answer.logits));
    EXPECT_EQ(std::ssize(answer.from_source), 4);
  }
}

TEST(NotFinite, TheGuardRollsBackAtOnceAndAnswersStayHealthy) {
  for (const char* guard : {"rollback", "rollback:to=healthy", "rollback:horizon=9999,every=999"}) {
    for (const char* select : {"all", "gala"}) {
      for (const auto predict : {PredictWith::kAdapting, PredictWith::kAfter}) {
        auto model = toy_model();
        MethodOptions options = ruinous(guard, select);
        options.predict = predict;
        Adapter adapter(*model, options);
        const at::Tensor source = parameters_of(adapter);
        for (int i = 1; i <= 20; ++i) {
          const Answer answer = adapter.answer(toy_images(i));
          EXPECT_TRUE(finite(answer.logits));
          ASSERT_TRUE(answer.health.has_value()) << guard << ' ' << select << ' ' << i;
          EXPECT_TRUE(answer.health->collapsed);
          EXPECT_TRUE(same_bytes(source, parameters_of(adapter)));
          EXPECT_FALSE(answer.steps[0].refused);
        }
        EXPECT_EQ(adapter.totals().rollbacks, 20);
        EXPECT_EQ(adapter.totals().unanswered, 0);
      }
    }
  }
}

/// Not so ruinous that the update gives it away: only the answers do, a batch later.
TEST(NotFinite, TheGuardRollsBackWhenOnlyTheSourceModelCanAnswer) {
  auto model = toy_model(1, "source");
  MethodOptions options = options_with("all", "rollback");
  options.optimizer = "sgd:rate=1e6";
  Adapter adapter(*model, options);
  const at::Tensor source = parameters_of(adapter);
  for (int i = 1; i <= 20; ++i) {
    const Answer answer = adapter.answer(toy_images(i));
    EXPECT_TRUE(finite(answer.logits));
    EXPECT_EQ(answer.health.has_value(), i % 2 == 0) << i;
    EXPECT_EQ(std::ssize(answer.from_source), i % 2 == 0 ? 4 : 0) << i;
    EXPECT_EQ(same_bytes(source, parameters_of(adapter)), i % 2 == 0) << i;
    if (answer.health) {
      EXPECT_EQ(answer.health->reasons.front(), "not finite");
    }
  }
  EXPECT_EQ(adapter.totals().rollbacks, 10);
  EXPECT_EQ(adapter.totals().from_source, 40);
}

TEST(NotFinite, InShadowModeTheSourceAnswersAndTheGuardStillSees) {
  auto model = toy_model(), plain_model = toy_model(), source = toy_model(1, "source");
  Adapter plain(*plain_model, ruinous("warn"));
  MethodOptions options = ruinous("warn");
  options.shadow = true;
  Adapter adapter(*model, options);
  EXPECT_TRUE(adapter.answer(toy_images(1)).health->collapsed);
  plain.answer(toy_images(1));
  for (int i = 2; i <= 10; ++i) {
    const at::Tensor images = i == 5 ? with_bad_pixel(toy_images(i), 2, kNan) : toy_images(i);
    const Answer answer = adapter.answer(images), other = plain.answer(images);
    EXPECT_TRUE(
        same_bytes(answer.logits.slice(0, 0, 2), source->forward(images).logits.slice(0, 0, 2)));
    EXPECT_TRUE(same_bytes(answer.adapted.slice(0, 0, 2), other.logits.slice(0, 0, 2)));
    EXPECT_EQ(answer.unanswered, i == 5 ? Numbers{2} : Numbers{});
    EXPECT_TRUE(answer.from_source.empty()) << "nothing was replaced";
    EXPECT_EQ(answer.health.has_value(), i == 10);
  }
}

TEST(NotFinite, AnUpdateThatIsNotFiniteIsRefused) {
  /// Of a gradient that is finite.
  class Steep : public Loss {
   public:
    LossTerms evaluate(const LossInput& input) const override {
      LossTerms terms = EntropyLoss(EntropyLoss::Options{}).evaluate(input);
      terms.value = terms.value * 1e6;
      return terms;
    }
  };
  auto model = toy_model();
  Adapter adapter(*model, {.select = "all", .optimizer = "sgd:rate=1e38", .guard = "stop"},
                  {.parts = {.loss = std::make_unique<Steep>()}});
  const at::Tensor before = parameters_of(adapter);
  for (int i = 1; i <= Guard::kRefusedInARow; ++i) {
    EXPECT_FALSE(adapter.stopped());
    const Answer answer = adapter.answer(toy_images(i));
    EXPECT_TRUE(answer.steps[0].refused);
    EXPECT_TRUE(std::isfinite(answer.steps[0].gradient_norm));
    EXPECT_TRUE(same_bytes(before, parameters_of(adapter)));
  }
  EXPECT_TRUE(adapter.stopped()) << "refused " << Guard::kRefusedInARow << " times in a row";
}

TEST(NotFinite, AStateSavedAfterItGoesOnToTheSameBytes) {
  const auto images = [](int i) {
    return i % 4 == 0 ? with_bad_pixel(toy_images(i), 1, kNan) : toy_images(i);
  };
  for (const char* guard : {"off", "warn:every=3", "stop", "rollback:to=healthy"}) {
    for (const int until : {1, 2, 4, 8}) {
      auto straight_model = toy_model(1, "running"), first_model = toy_model(1, "running"),
           second_model = toy_model(1, "running");
      Adapter straight(*straight_model, ruinous(guard)), first(*first_model, ruinous(guard)),
          second(*second_model, ruinous(guard));
      for (int i = 1; i <= until; ++i) straight.answer(images(i)), first.answer(images(i));
      State state = first.save();
      state.values = nlohmann::json::parse(state.values.dump());  // as through a file
      second.load(state);
      EXPECT_EQ(second.totals().from_source, straight.totals().from_source);
      EXPECT_EQ(second.totals().unanswered, straight.totals().unanswered);
      for (int i = until + 1; i <= 12; ++i) {
        const Answer a = straight.answer(images(i)), b = second.answer(images(i));
        EXPECT_EQ(a.predictions, b.predictions) << guard << ' ' << i;
        ASSERT_EQ(a.health.has_value(), b.health.has_value()) << guard << ' ' << i;
        if (a.health) {
          EXPECT_EQ(a.health->to_json().dump(), b.health->to_json().dump());
        }
      }
      EXPECT_EQ(straight.save().values, second.save().values) << guard;
    }
  }
}

}  // namespace
}  // namespace gala
