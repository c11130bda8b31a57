// Captured passes beside those that are not, and what cannot be captured; many at once, and for long.
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "gala/base/error.h"
#include "gala/device/device_memory.h"
#include "gala/method/recipe.h"
#include "tests/cuda/adapter_case.h"
#include "tests/method/easy_recipe.h"

namespace gala {
namespace {

TEST_F(CudaAdapter, RecordedAndUnrecordedStepsAgreeBitForBit) {
  for (const char* norm : {"source", "batch", "blend:weight=0.3", "running"}) {
    for (const char* select : {"gala", "all", "auto_rgn", "auto_snr", "random",
                               "gala:displacement=difference,anchor=previous"}) {
      for (const auto predict : {PredictWith::kAdapting, PredictWith::kAfter}) {
        MethodOptions options{.loss = "shot", .select = select, .inner_steps = 2};
        options.predict = predict;
        const auto recorded_model = model(norm), plain_model = model(norm);
        Adapter recorded(*recorded_model, options);
        Adapter plain(*plain_model, options, {.capture = false});
        for (std::uint64_t step = 0; step < 25; ++step) {
          // The last batch of a stream is often a smaller one.
          const at::Tensor batch = images(step % 11 == 10 ? 5 : 16, step);
          const Answer a = recorded.answer(batch), b = plain.answer(batch);
          ASSERT_TRUE(at::equal(a.logits, b.logits)) << norm << ' ' << select << ' ' << step;
          ASSERT_EQ(a.predictions, b.predictions);
          ASSERT_EQ(a.steps[1].loss, b.steps[1].loss);
        }
        EXPECT_EQ(recorded.capture_problem(), "");
        EXPECT_TRUE(equal(recorded.save(), plain.save())) << norm << ' ' << select;
      }
    }
  }
}

/// What parts remember inside a pass lies where a captured pass finds it.
TEST_F(CudaAdapter, RecordedAndUnrecordedPartsAgreeBitForBit) {
  for (const char* samples :
       {"eta:margin=1,redundancy=0.9", "eta:margin=1e-9", "diverse_certain"}) {
    for (const char* loss : {"entropy", "soft_likelihood_ratio", "generalised_cross_entropy"}) {
      const MethodOptions options{.loss = loss,
                                  .samples = samples,
                                  .select = "gala",
                                  .after_step = "ensemble",
                                  .readout = "prior"};
      const auto recorded_model = model("batch"), plain_model = model("batch");
      Adapter recorded(*recorded_model, options);
      Adapter plain(*plain_model, options, {.capture = false});
      for (std::uint64_t step = 0; step < 12; ++step) {
        const at::Tensor batch = images(16, step);
        const Answer a = recorded.answer(batch), b = plain.answer(batch);
        ASSERT_TRUE(at::equal(a.logits, b.logits)) << samples << ' ' << loss << ' ' << step;
        ASSERT_EQ(a.steps[0].selected(), b.steps[0].selected());
      }
      EXPECT_EQ(recorded.capture_problem(), "");
      EXPECT_TRUE(equal(recorded.save(), plain.save())) << samples << ' ' << loss;
    }
  }
}

/// Every recipe, captured where it can be and not: the same answers and the same state.
TEST_F(CudaAdapter, RecordedAndUnrecordedRecipesAgreeBitForBit) {
  const auto source = [](const MethodOptions& options) -> SourceImages {
    if (!learns_from_source(options)) return {};
    return [number = std::uint64_t{50}]() mutable {
      return number < 53 ? images(16, number++) : at::Tensor{};
    };
  };
  for (const Recipe& each : recipes()) {
    MethodOptions options = recipe(each.name);
    if (options.teacher == "mean:views=32") options.teacher = "mean:views=2,below=1";
    if (options.store == "balanced") options.store = "balanced:size=8,every=8";
    const auto recorded_model = model("source"), plain_model = model("source");
    Adapter recorded(*recorded_model, options, {.source_images = source(options)});
    Adapter plain(*plain_model, options, {.capture = false, .source_images = source(options)});
    for (std::uint64_t step = 0; step < 8; ++step) {
      const at::Tensor batch = images(16, step);
      const Answer a = recorded.answer(batch), b = plain.answer(batch);
      ASSERT_TRUE(at::equal(a.logits, b.logits)) << each.name << ' ' << step;
    }
    EXPECT_EQ(recorded.capture_problem(), "") << each.name;
    EXPECT_TRUE(equal(recorded.save(), plain.save())) << each.name;
  }
}

/// Looks at the images that count, whose number is another at every step, in every room that it asks for; with a
/// probe, a penalty and two steps a batch as well.
TEST_F(CudaAdapter, RecordedAndUnrecordedLooksAgreeBitForBit) {
  for (const char* method : {"roid", "cmf", "deyo"}) {
    for (const char* select : {"", "palm", "gala"}) {
      MethodOptions options = recipe(method);
      if (*select) options.select = select;
      if (options.select == "gala") {
        options.inner_steps = 2;
        options.penalty = "distance:weight=0.1";
      }
      const auto recorded_model = model("batch"), plain_model = model("batch");
      Adapter recorded(*recorded_model, options);
      Adapter plain(*plain_model, options, {.capture = false});
      for (std::uint64_t step = 0; step < 16; ++step) {
        const at::Tensor batch = images(step % 7 == 6 ? 40 : 130, step);
        const Answer a = recorded.answer(batch), b = plain.answer(batch);
        ASSERT_TRUE(at::equal(a.logits, b.logits)) << method << ' ' << select << ' ' << step;
        ASSERT_EQ(a.steps.back().loss, b.steps.back().loss)
            << method << ' ' << select << ' ' << step;
      }
      EXPECT_EQ(recorded.capture_problem(), "") << method;
      EXPECT_TRUE(equal(recorded.save(), plain.save())) << method << ' ' << select;
    }
  }
}

/// A teacher that chooses in the middle of a pass whether it looks: never, always, and by turns.
TEST_F(CudaAdapter, RecordedAndUnrecordedChoicesAgreeBitForBit) {
  std::vector<float> sure;
  const auto source = model("batch");
  for (std::uint64_t step = 0; step < 12; ++step) {
    const at::Tensor logits = source->forward(images(40, step).cuda()).logits;
    sure.push_back(at::softmax(logits, 1).amax(1).mean().item<float>());
  }
  std::sort(sure.begin(), sure.end());
  for (const double below : {0.0, (sure[5] + sure[6]) / 2.0, 1.0}) {
    MethodOptions options = recipe("cotta");
    options.teacher = fmt::format("mean:views=4,below={}", below);
    const auto recorded_model = model("batch"), plain_model = model("batch");
    Adapter recorded(*recorded_model, options);
    Adapter plain(*plain_model, options, {.capture = false});
    for (std::uint64_t step = 0; step < 24; ++step) {
      const at::Tensor batch = images(40, step % 12);
      const Answer a = recorded.answer(batch), b = plain.answer(batch);
      ASSERT_TRUE(at::equal(a.logits, b.logits)) << below << ' ' << step;
      ASSERT_EQ(a.steps[0].loss, b.steps[0].loss) << below << ' ' << step;
    }
    EXPECT_EQ(recorded.capture_problem(), "");
    EXPECT_TRUE(equal(recorded.save(), plain.save())) << below;
  }
}

/// Recorded passes and the answers that are made up for beside them.
TEST_F(CudaAdapter, AnswersThatAreNotFiniteAreReplacedRecordedOrNot) {
  for (const char* norm : {"source", "batch", "running"}) {
    for (const char* optimizer : {"adam:rate=1e-3", "sgd:rate=1e38"}) {
      for (const char* guard : {"off", "warn", "rollback"}) {
        MethodOptions options{.loss = "entropy", .select = "all", .optimizer = optimizer};
        options.guard = guard;
        const auto recorded_model = model(norm), plain_model = model(norm);
        Adapter recorded(*recorded_model, options);
        Adapter plain(*plain_model, options, {.capture = false});
        for (std::uint64_t step = 0; step < 12; ++step) {
          at::Tensor batch = images(8, step);
          if (step % 5 == 4) batch[3][1][5][5] = std::numeric_limits<float>::quiet_NaN();
          const Answer a = recorded.answer(batch), b = plain.answer(batch);
          const std::string where = fmt::format("{} {} {} {}", norm, optimizer, guard, step);
          ASSERT_EQ(a.predictions, b.predictions) << where;
          ASSERT_EQ(a.from_source, b.from_source) << where;
          ASSERT_EQ(a.health.has_value(), b.health.has_value()) << where;
          const std::vector<std::int64_t> broken(step % 5 == 4 ? 1 : 0, 3);
          ASSERT_EQ(a.unanswered, broken) << where;
          for (std::int64_t i = 0; i < 8; ++i) {
            const bool answered = a.predictions[static_cast<std::size_t>(i)] != kNoClass;
            ASSERT_EQ(at::isfinite(a.logits[i]).all().item<bool>(), answered) << where;
            if (answered) {
              ASSERT_TRUE(at::equal(a.logits[i], b.logits[i])) << where;
            }
          }
        }
        EXPECT_EQ(recorded.capture_problem(), "");
        EXPECT_EQ(recorded.totals().from_source, plain.totals().from_source);
      }
    }
  }
}

std::int64_t bytes_in_use() {
  return memory_use(at::Device(at::kCUDA, 0)).current;
}

TEST_F(CudaAdapter, TwoThousandRecordedStepsLeakNothing) {
  const auto network = model("batch");
  Adapter adapter(*network, {.loss = "shot"});
  const at::Tensor batch = images(4, 1).to(at::kCUDA);
  for (int step = 0; step < 20; ++step) adapter.answer(batch);
  const std::int64_t before = bytes_in_use();
  for (int step = 0; step < 2000; ++step) adapter.answer(batch);
  EXPECT_EQ(bytes_in_use(), before);
}

TEST_F(CudaAdapter, ShapesThatChangeRunUnrecordedAndLeakNothing) {
  const auto network = model("batch");
  Adapter adapter(*network, {.loss = "shot"});
  std::int64_t after_two = 0;
  for (int round = 0; round < 4; ++round) {
    for (std::int64_t count = 1; count <= 40; ++count) adapter.answer(images(count, 1));
    if (round == 1) after_two = bytes_in_use();
  }
  EXPECT_EQ(adapter.capture_problem(), "");
  EXPECT_EQ(adapter.totals().steps, 160);
  EXPECT_EQ(bytes_in_use(), after_two);
}

/// Looks at its own value, which no recorded work may.
class CuriousLoss : public Loss {
 public:
  LossTerms evaluate(const LossInput& input) const override {
    LossTerms terms = inner_->evaluate(input);
    EXPECT_TRUE(std::isfinite(terms.value.item<double>()));
    return terms;
  }
  bool adapts_head() const override { return inner_->adapts_head(); }

 private:
  std::unique_ptr<Loss> inner_ = make_loss("shot");
};

TEST_F(CudaAdapter, WhatCannotBeRecordedRunsUnrecordedAndLeaksNothing) {
  const auto run = [](Model& network, bool record, std::string& problem) {
    Adapter adapter(network, {},
                    {.capture = record, .parts = {.loss = std::make_unique<CuriousLoss>()}});
    std::int64_t in_use = 0;
    for (std::uint64_t step = 0; step < 200; ++step) {
      adapter.answer(images(8, step).to(at::kCUDA));
      if (step == 20) in_use = bytes_in_use();
    }
    EXPECT_EQ(bytes_in_use(), in_use);
    problem = adapter.capture_problem();
    return adapter.save();
  };
  std::string problem, none;
  const auto first = model("batch"), second = model("batch");
  const State found = run(*first, true, problem), expected = run(*second, false, none);
  EXPECT_NE(problem, "");
  EXPECT_EQ(none, "");
  EXPECT_TRUE(equal(found, expected));
  // And others can still be recorded.
  const auto third = model("batch");
  Adapter adapter(*third, {.loss = "shot"});
  for (std::uint64_t step = 0; step < 5; ++step) adapter.answer(images(8, step));
  EXPECT_EQ(adapter.capture_problem(), "");
}

TEST_F(CudaAdapter, ManyAtOnceGiveWhatOneAfterTheOtherGives) {
  constexpr int kAdapters = 8;
  std::vector<std::unique_ptr<Model>> models;
  std::vector<State> expected(kAdapters), found(kAdapters);
  const auto run = [](Model& network, int seed, State& state) {
    // Several in turn and of different lengths, so that some end while others are being recorded.
    for (int turn = 0; turn < 3; ++turn) {
      Adapter adapter(network, {.loss = "shot", .seed = 1});
      for (std::uint64_t step = 0; step < 20 + 7 * static_cast<std::uint64_t>(seed); ++step) {
        adapter.answer(images(8, 100 * static_cast<std::uint64_t>(seed) + step));
      }
      state = adapter.save();
      adapter.reset();
    }
  };
  for (int i = 0; i < kAdapters; ++i) run(*model("batch"), i, expected[i]);
  for (int i = 0; i < kAdapters; ++i) models.push_back(model("batch"));
  std::vector<std::thread> threads;
  for (int i = 0; i < kAdapters; ++i) {
    threads.emplace_back([&, i] { run(*models[i], i, found[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kAdapters; ++i) EXPECT_TRUE(equal(found[i], expected[i])) << i;
}

/// New shapes make cuDNN look for algorithms, and wait for the device, while others are being recorded.
TEST_F(CudaAdapter, ManyAtOnceMayMeetNewShapes) {
  set_deterministic(false);
  constexpr int kThreads = 8, kTurns = 4;
  std::vector<std::string> problems(kThreads);
  const auto run = [](int thread) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto network = model("source");
      network->set_memory_format(at::MemoryFormat::ChannelsLast);
      Adapter adapter(*network, {.loss = "shot", .select = thread % 4 == 0 ? "none" : "gala"});
      for (std::uint64_t step = 0; step < 12; ++step) {
        // Shapes come in threes: one to try, one to record, one to replay.
        const auto size = 1 + (thread + 5 * turn + 3 * static_cast<std::int64_t>(step / 3)) % 17;
        const at::Tensor batch = images(size, step).to(at::kCUDA);
        adapter.answer(batch);
        const c10::NoGradGuard no_grad;
        network->forward(batch.narrow(0, 0, (size + 1) / 2), /*update_statistics=*/false);
      }
      if (!adapter.capture_problem().empty()) fail("{}", adapter.capture_problem());
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      try {
        run(thread);
      } catch (const std::exception& problem) {
        problems[static_cast<std::size_t>(thread)] = problem.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace gala
