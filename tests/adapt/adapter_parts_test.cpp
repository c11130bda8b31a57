// Parts of one's own, and where in the loop they are asked.
#include <gtest/gtest.h>

#include <cmath>

#include "gala/adapt/adapter.h"
#include "gala/base/error.h"
#include "gala/loss/entropy.h"
#include "gala/optim/adam.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

TEST(Adapter, TakesPartsOfOnesOwn) {
  /// Moves the first layer alone.
  class First : public Selector {
    std::vector<double> select(const Proposal& proposal) override {
      std::vector<double> weights(proposal.layers.size(), 0.0);
      weights[0] = 1;
      return weights;
    }
  };
  auto model = toy_model();
  Adapter adapter(*model, {.guard = "off"},
                  {.parts = {.loss = std::make_unique<EntropyLoss>(EntropyLoss::Options{}),
                             .optimizer = std::make_unique<Adam>(Adam::Options{}),
                             .selector = std::make_unique<First>()}});
  adapter.answer(toy_images(1));
  EXPECT_EQ(adapter.totals().chosen[0], 1);
  EXPECT_EQ(adapter.totals().chosen[1], 0);
}

/// The parameters an adapter begins with.
at::Tensor toy_start(const MethodOptions& options) {
  auto model = toy_model();
  return parameters_of(Adapter(*model, options));
}

/// Lets every second image count, twice: the mean is then over those.
class EverySecond : public SampleRule {
 public:
  at::Tensor weigh(const SampleInput& input) override {
    const Output& output = input.output;
    at::Tensor weights =
        at::zeros({output.logits.size(0)}, output.logits.options().requires_grad(false));
    weights.slice(0, 0, weights.size(0), 2).fill_(2);
    return weights;
  }
};

TEST(Adapter, LetsASampleRuleSayWhichImagesCount) {
  const at::Tensor four = toy_images(1);
  auto model = toy_model(1, "source"), twin = toy_model(1, "source");
  const MethodOptions options{.loss = "entropy", .select = "all", .guard = "off"};
  Adapter ruled(*model, options, {.parts = {.samples = std::make_unique<EverySecond>()}});
  Adapter plain(*twin, options);
  ruled.answer(four);
  plain.answer(four.index_select(0, at::tensor({0, 2})));
  const double apart = (parameters_of(ruled) - parameters_of(plain)).abs().max().item<double>();
  EXPECT_LT(apart, 2e-4) << "the images that do not count must leave no trace";
  EXPECT_GT((parameters_of(ruled) - toy_start(options)).abs().max().item<double>(), 9e-4);
}

/// Where no image counts there is no step at all: moments and clock stay, and it is no alarm.
TEST(Adapter, LeavesOutAStepWithoutAnImageThatCounts) {
  auto model = toy_model(), twin = toy_model();
  MethodOptions options{.loss = "entropy", .samples = "eta:margin=1e-9", .select = "all"};
  Adapter adapter(*model, options);
  const State before = adapter.save();
  for (int i = 1; i <= 5; ++i) {
    const Answer answer = adapter.answer(toy_images(i));
    EXPECT_FALSE(answer.steps[0].refused);
    EXPECT_TRUE(answer.steps[0].skipped());
    EXPECT_FALSE(answer.health && answer.health->collapsed);
  }
  const State after = adapter.save();
  for (const auto& [name, tensor] : before.tensors) {
    EXPECT_TRUE(same_bytes(tensor, after.tensors.at(name))) << name;
  }
  EXPECT_EQ(before.values["clock"], after.values["clock"]);
  EXPECT_EQ(adapter.totals().skipped, 5);
  options.samples = "eta:margin=10,redundancy=2";
  Adapter other(*twin, options);
  EXPECT_FALSE(other.answer(toy_images(1)).steps[0].skipped());
}

TEST(Adapter, GoesOnWithThePartsThatTheOptionsName) {
  const MethodOptions options{.loss = "soft_likelihood_ratio",
                              .samples = "diverse_certain",
                              .select = "gala",
                              .after_step = "ensemble:source=0.1",
                              .readout = "prior"};
  auto model = toy_model(), twin = toy_model(), third = toy_model();
  Adapter straight(*model, options), resumed(*twin, options);
  for (int i = 1; i <= 3; ++i) straight.answer(toy_images(i));
  resumed.load(straight.save());
  for (int i = 4; i <= 6; ++i) {
    EXPECT_TRUE(
        same_bytes(straight.answer(toy_images(i)).logits, resumed.answer(toy_images(i)).logits));
  }
  EXPECT_TRUE(same_bytes(parameters_of(straight), parameters_of(resumed)));
  MethodOptions other = options;
  other.samples = "eta";
  EXPECT_THROW(Adapter(*third, other).load(straight.save()), Error);
}

/// Brings parameters half of the way back.
class HalfBack : public AfterStep {
 public:
  explicit HalfBack(std::int64_t& count) : count_(count) {}
  void after(const StepView& view, const StepRecord& record) override {
    EXPECT_FALSE(record.refused);
    view.parameters.values().add_(view.source).mul_(0.5);
    ++count_;
  }
  void reset() override { count_ = 0; }
  void remember(StateArchive& archive) override { archive.value("half_back", count_); }

 private:
  std::int64_t& count_;
};

TEST(Adapter, DoesWhatIsToBeDoneAfterEveryStep) {
  const MethodOptions options{.loss = "entropy", .select = "all", .guard = "off"};
  const auto adapter_of = [&](Model& model, std::int64_t& count) {
    AdapterSetup setup;
    setup.parts.after_step.push_back(std::make_unique<HalfBack>(count));
    return std::make_unique<Adapter>(model, options, std::move(setup));
  };
  auto model = toy_model(), twin = toy_model(), third = toy_model();
  std::int64_t count = 0, other_count = 0;
  const auto pulled = adapter_of(*model, count);
  Adapter plain(*twin, options);
  pulled->answer(toy_images(1));
  plain.answer(toy_images(1));
  EXPECT_EQ(count, 1);
  const at::Tensor start = toy_start(options);
  EXPECT_TRUE(
      at::allclose(parameters_of(*pulled) - start, (parameters_of(plain) - start) / 2, 0, 1e-7));
  const State state = pulled->save();
  const auto resumed = adapter_of(*third, other_count);
  resumed->load(state);
  EXPECT_EQ(other_count, 1);
  EXPECT_THROW(plain.load(state), Error) << "it has no such part";
  const Answer next = pulled->answer(toy_images(2)), same = resumed->answer(toy_images(2));
  EXPECT_TRUE(same_bytes(next.logits, same.logits));
  EXPECT_TRUE(same_bytes(parameters_of(*pulled), parameters_of(*resumed)));
  EXPECT_EQ(next.steps[0].layers[0].shift_norm,
            plain.answer(toy_images(2)).steps[0].layers[0].shift_norm)
      << "what is done after a step is no displacement";
  pulled->reset();
  EXPECT_EQ(count, 0);
}

/// The last class always wins.
class LastClass : public Readout {
 public:
  at::Tensor correct(const Output& output) override {
    const at::Tensor& logits = output.logits;
    at::Tensor answer = logits.clone();
    answer.select(1, answer.size(1) - 1).fill_(100);
    return answer;
  }
};

TEST(Adapter, AnswersWithWhatTheReadoutMakes) {
  for (const PredictWith predict : {PredictWith::kAdapting, PredictWith::kAfter}) {
    auto model = toy_model(), twin = toy_model();
    const MethodOptions options{.predict = predict};
    Adapter adapter(*model, options, {.parts = {.readout = std::make_unique<LastClass>()}});
    Adapter plain(*twin, options);
    const Answer answer = adapter.answer(toy_images(1));
    EXPECT_EQ(answer.predictions, (std::vector<std::int64_t>{3, 3, 3, 3}));
    EXPECT_EQ(answer.logits.argmax(1)[0].item<std::int64_t>(), 3);
    plain.answer(toy_images(1));
    EXPECT_TRUE(same_bytes(parameters_of(adapter), parameters_of(plain)))
        << "the loss sees the logits";
  }
}

TEST(Adapter, RefusesALossWhoseNeedsNobodyMeets) {
  class Pupil : public EntropyLoss {
   public:
    using EntropyLoss::EntropyLoss;
    LossNeeds needs() const override { return {.teacher = true}; }
  };
  auto model = toy_model();
  EXPECT_THROW(
      Adapter(*model, {}, {.parts = {.loss = std::make_unique<Pupil>(EntropyLoss::Options{})}}),
      ConfigError);
}

TEST(Adapter, RefusesWeightsThatAreNoNumbers) {
  class Mad : public Selector {
    std::vector<double> select(const Proposal& proposal) override {
      return std::vector<double>(proposal.layers.size(), std::nan(""));
    }
  };
  auto model = toy_model();
  Adapter adapter(*model, {}, {.parts = {.selector = std::make_unique<Mad>()}});
  const at::Tensor before = parameters_of(adapter);
  EXPECT_THROW(adapter.answer(toy_images(1)), Error);
  EXPECT_TRUE(same_bytes(before, parameters_of(adapter)));
}

TEST(Adapter, CountsUpdatesByTheirWeight) {
  class Quarter : public Selector {
    std::vector<double> select(const Proposal& proposal) override {
      return std::vector<double>(proposal.layers.size(), 0.25);
    }
  };
  auto model = toy_model(), twin = toy_model();
  const auto parts = [] { return MethodParts{.selector = std::make_unique<Quarter>()}; };
  Adapter adapter(*model, {}, {.parts = parts()}), resumed(*twin, {}, {.parts = parts()});
  for (int i = 1; i <= 3; ++i) adapter.answer(toy_images(i));
  EXPECT_EQ(adapter.totals().weight, std::vector<double>(adapter.layers().size(), 0.75));
  EXPECT_EQ(adapter.totals().chosen, std::vector<std::int64_t>(adapter.layers().size(), 0));
  resumed.load(adapter.save());
  EXPECT_EQ(resumed.totals().weight, adapter.totals().weight);
  adapter.reset();
  EXPECT_EQ(adapter.totals().weight, std::vector<double>(adapter.layers().size(), 0.0));
}

}  // namespace
}  // namespace gala
