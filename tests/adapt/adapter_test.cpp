#include "gala/adapt/adapter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gala/base/error.h"
#include "gala/loss/entropy.h"
#include "gala/optim/adam.h"
#include "gala/select/all.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

MethodOptions toy_options(const std::string& select) {
  return {.loss = "entropy", .select = select, .guard = "off"};
}

TEST(Adapter, AnswersWithTheParametersBeforeTheUpdate) {
  auto model = toy_model(), twin = toy_model();
  Adapter adapter(*model, toy_options("all"));
  const at::Tensor images = toy_images(1);
  EXPECT_TRUE(same_bytes(adapter.answer(images).logits, twin->forward(images).logits));
  EXPECT_FALSE(same_bytes(adapter.answer(images).logits, twin->forward(images).logits));
}

TEST(Adapter, AnswersWithTheParametersAfterTheUpdateWhenAsked) {
  auto model = toy_model(), twin = toy_model();
  MethodOptions options = toy_options("all");
  Adapter before(*twin, options);
  options.predict = PredictWith::kAfter;
  Adapter after(*model, options);
  const at::Tensor images = toy_images(1);
  before.answer(images);
  const at::Tensor expected = twin->forward(images).logits;
  EXPECT_TRUE(same_bytes(after.answer(images).logits, expected));
}

TEST(Adapter, BorrowsTheModelAndGivesItBackAsItWas) {
  auto model = toy_model(1, "source"), twin = toy_model(1, "source");
  const at::Tensor images = toy_images(1);
  {
    MethodOptions options = toy_options("all");
    options.norm = "running";
    options.predict = PredictWith::kAfter;
    Adapter adapter(*model, options);
    EXPECT_TRUE(model->norm_mode().to_string().starts_with("running"));
    for (int batch = 1; batch <= 3; ++batch) adapter.answer(toy_images(batch));
    EXPECT_FALSE(same_bytes(model->forward(images, false).logits, twin->forward(images).logits));
    EXPECT_THROW(Adapter(*model, toy_options("gala")), Error) << "it is lent already";
    EXPECT_THROW(model->to(at::kCPU), Error) << "the adapter's parameters would be lost";
  }
  EXPECT_EQ(model->norm_mode().to_string(), twin->norm_mode().to_string());
  EXPECT_FALSE(model->keeps_activations());
  EXPECT_TRUE(same_bytes(model->forward(images).logits, twin->forward(images).logits));
  for (const Parameter& parameter : model->parameters()) {
    EXPECT_FALSE(parameter.value.requires_grad()) << parameter.name;
  }
  // The next one starts from the source, not from what the first one made of it.
  Adapter next(*model, toy_options("all")), other(*twin, toy_options("all"));
  EXPECT_TRUE(same_bytes(parameters_of(next), parameters_of(other)));
}

TEST(Adapter, ThatCannotBeMadeLeavesTheModelFree) {
  auto model = toy_model(1, "source");
  EXPECT_THROW(Adapter(*model, toy_options("fixed:layers=nowhere")), ConfigError);
  MethodOptions options = toy_options("all");
  options.norm = "batch";
  options.inner_steps = 0;
  EXPECT_THROW(Adapter(*model, options), ConfigError);
  EXPECT_EQ(model->norm_mode().to_string(), "source");
  EXPECT_NO_THROW(Adapter(*model, toy_options("all")));
}

TEST(Adapter, MovesOnlyTheChosenLayer) {
  auto model = toy_model();
  Adapter adapter(*model, toy_options("fixed:layers=block2.layer.0.conv1"));
  const at::Tensor before = parameters_of(adapter);
  adapter.answer(toy_images(1));
  for (std::size_t l = 0; l < adapter.layers().size(); ++l) {
    for (const std::size_t t : adapter.layers()[l].tensors) {
      const bool moved = !same_bytes(adapter.parameters().view(before, t),
                                     adapter.parameters().view(adapter.parameters().values(), t));
      EXPECT_EQ(moved, adapter.layers()[l].name == "block2.layer.0.conv1")
          << adapter.layers()[l].name;
    }
  }
}

TEST(Adapter, FreezesTheHeadAsTheLossAsks) {
  const auto has_head = [](const MethodOptions& options) {
    auto model = toy_model();
    const Adapter adapter(*model, options);
    return adapter.layers().layers.back().name == "fc";
  };
  EXPECT_TRUE(has_head({.loss = "pseudo_label"}));
  EXPECT_FALSE(has_head({.loss = "shot"}));
  EXPECT_FALSE(has_head({.loss = "pseudo_label", .head = HeadRule::kFreeze}));
  EXPECT_TRUE(has_head({.loss = "shot", .head = HeadRule::kAdapt}));
}

TEST(Adapter, RefusesAStepThatIsNotFinite) {
  for (const char* norm : {"source", "batch", "blend", "running:momentum=0.2"}) {
    auto model = toy_model(1, norm);
    Adapter adapter(*model, toy_options("all"));
    for (int i = 1; i <= 3; ++i) adapter.answer(toy_images(i));
    const State before = adapter.save();
    at::Tensor broken = toy_images(4).clone();
    broken[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
    const Answer answer = adapter.answer(broken);
    ASSERT_EQ(answer.steps.size(), 1u);
    EXPECT_TRUE(answer.steps[0].refused);
    EXPECT_EQ(adapter.totals().refused, 1);
    const State after = adapter.save();
    for (const auto& [name, tensor] : before.tensors) {
      EXPECT_TRUE(same_bytes(tensor, after.tensors.at(name))) << norm << " " << name;
    }
    EXPECT_EQ(before.values["clock"], after.values["clock"]);
    EXPECT_EQ(before.values["optimizer_steps"], after.values["optimizer_steps"]);
    EXPECT_FALSE(adapter.answer(toy_images(5)).steps[0].refused);
  }
}

TEST(Adapter, AnswersHealthyImagesBesideABrokenOne) {
  auto model = toy_model(1, "running:momentum=0.2");
  Adapter adapter(*model, toy_options("none"));
  at::Tensor broken = toy_images(4).clone();
  broken[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor logits = adapter.answer(broken).logits;
  EXPECT_TRUE(at::isfinite(logits.slice(0, 1)).all().item<bool>());
  EXPECT_TRUE(at::isfinite(adapter.answer(toy_images(5)).logits).all().item<bool>());
}

TEST(Adapter, CountsABatchWithoutConfidentSamplesAsASkippedStep) {
  auto model = toy_model();
  Adapter adapter(*model, {.loss = "pseudo_label:beta=1", .select = "gala", .guard = "off"});
  const at::Tensor before = parameters_of(adapter);
  for (int i = 1; i <= 3; ++i) {
    const Answer answer = adapter.answer(toy_images(i));
    EXPECT_EQ(answer.steps[0].confident, 0);
    EXPECT_EQ(answer.steps[0].loss, 0);
    EXPECT_EQ(answer.steps[0].gradient_norm, 0);
  }
  EXPECT_TRUE(same_bytes(before, parameters_of(adapter)));
  EXPECT_EQ(adapter.totals().skipped, 2);  // the first opens the window
}

TEST(Adapter, TakesSeveralStepsABatchWhenAsked) {
  auto model = toy_model();
  MethodOptions options = toy_options("gala:window=2");
  options.inner_steps = 3;
  Adapter adapter(*model, options);
  const Answer answer = adapter.answer(toy_images(1));
  ASSERT_EQ(answer.steps.size(), 3u);
  EXPECT_EQ(answer.steps[0].window_step, 1);
  EXPECT_EQ(answer.steps[1].window_step, 2);
  EXPECT_EQ(answer.steps[2].window_step, 1);
  EXPECT_EQ(answer.steps[2].batch, 1);
  EXPECT_EQ(answer.steps[2].step, 3);
}

TEST(Adapter, AdaptsOnEveryNthBatchOnly) {
  auto model = toy_model();
  MethodOptions options = toy_options("all");
  options.adapt_every = 3;
  Adapter adapter(*model, options);
  std::vector<std::size_t> steps;
  for (int i = 1; i <= 5; ++i) steps.push_back(adapter.answer(toy_images(i)).steps.size());
  EXPECT_EQ(steps, (std::vector<std::size_t>{1, 0, 0, 1, 0}));
}

TEST(Adapter, StartsFromTheSourceAtEveryBatchWhenEpisodic) {
  auto model = toy_model(1, "running:momentum=0.2"), fresh = toy_model(1, "running:momentum=0.2");
  MethodOptions options = toy_options("all");
  options.inner_steps = 2;
  Adapter straight(*fresh, options);
  options.episodic = true;
  Adapter episodic(*model, options);
  for (int i = 1; i <= 3; ++i) episodic.answer(toy_images(i));
  EXPECT_TRUE(
      same_bytes(episodic.answer(toy_images(9)).logits, straight.answer(toy_images(9)).logits));
}

TEST(Adapter, ReturnsToTheSourceExactly) {
  auto model = toy_model(1, "running:momentum=0.2");
  Adapter adapter(*model, toy_options("random"));
  const State before = adapter.save();
  std::vector<at::Tensor> first;
  for (int i = 1; i <= 5; ++i) first.push_back(adapter.answer(toy_images(i)).logits);
  adapter.reset();
  const State after = adapter.save();
  EXPECT_EQ(before.values, after.values);
  for (const auto& [name, tensor] : before.tensors) {
    EXPECT_TRUE(same_bytes(tensor, after.tensors.at(name))) << name;
  }
  for (int i = 1; i <= 5; ++i) {
    EXPECT_TRUE(
        same_bytes(adapter.answer(toy_images(i)).logits, first[static_cast<std::size_t>(i - 1)]));
  }
}

TEST(Adapter, AnswersFromTheSourceInShadowMode) {
  auto model = toy_model(), adapted_model = toy_model(), source = toy_model(1, "source");
  MethodOptions options = toy_options("all");
  Adapter plain(*adapted_model, options);
  options.shadow = true;
  Adapter shadow(*model, options);
  for (int i = 1; i <= 4; ++i) {
    const at::Tensor images = toy_images(i);
    const Answer answer = shadow.answer(images);
    EXPECT_TRUE(same_bytes(answer.logits, source->forward(images).logits));
    EXPECT_TRUE(same_bytes(answer.adapted, plain.answer(images).logits));
  }
}

TEST(Adapter, ForwardsOnlyWhenNothingMoves) {
  auto model = toy_model();
  Adapter adapter(*model, toy_options("none"));
  const Answer answer = adapter.answer(toy_images(1));
  EXPECT_TRUE(answer.steps.empty());
  EXPECT_FALSE(answer.logits.requires_grad());
}

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

TEST(Adapter, CountsPathAndNetDisplacement) {
  auto model = toy_model();
  Adapter adapter(*model, toy_options("fixed:layers=conv1"));
  double path = 0;
  for (int i = 1; i <= 6; ++i) path += adapter.answer(toy_images(i)).steps[0].layers[0].update_norm;
  EXPECT_DOUBLE_EQ(adapter.totals().path[0], path);
  const double net = adapter.net_displacement()[0];
  EXPECT_GT(net, 0);
  EXPECT_LE(net, path * (1 + 1e-6));
  EXPECT_EQ(adapter.net_displacement()[1], 0);
}

TEST(Adapter, RollsBackToTheSourceAfterCollapse) {
  auto model = toy_model();
  MethodOptions options = toy_options("all");
  options.optimizer = "adam:rate=1";
  options.guard = "rollback:horizon=8,every=2,displacement=0.3";
  Adapter adapter(*model, options);
  const at::Tensor source = parameters_of(adapter);
  bool rolled_back = false;
  for (int i = 1; i <= 12; ++i) {
    const Answer answer = adapter.answer(toy_images(i));
    if (!answer.health || !answer.health->collapsed) continue;
    rolled_back = true;
    EXPECT_EQ(answer.health->action, "rollback to source");
    EXPECT_TRUE(same_bytes(source, parameters_of(adapter)));
  }
  EXPECT_TRUE(rolled_back);
  EXPECT_GT(adapter.totals().rollbacks, 0);
}

TEST(Adapter, RollsBackToTheLastHealthyParameters) {
  auto model = toy_model();
  MethodOptions options = toy_options("all");
  options.optimizer = "sgd:rate=0.05";
  // Any class less than at the reference is called a collapse.
  options.guard = "rollback:to=healthy,horizon=4,every=1,diversity=1";
  Adapter adapter(*model, options);
  at::Tensor healthy = parameters_of(adapter);
  int rollbacks = 0;
  for (int i = 1; i <= 60; ++i) {
    const Answer answer = adapter.answer(toy_images(i));
    if (!answer.health) continue;
    if (answer.health->collapsed) {
      EXPECT_TRUE(same_bytes(healthy, parameters_of(adapter)));
      ++rollbacks;
    } else {
      healthy = parameters_of(adapter);
    }
  }
  EXPECT_GT(rollbacks, 0);
}

TEST(Adapter, StopsAdaptingWhenTheGuardSaysSo) {
  auto model = toy_model();
  MethodOptions options = toy_options("all");
  options.optimizer = "adam:rate=1";
  options.guard = "stop:horizon=4,every=1,displacement=0.1";
  Adapter adapter(*model, options);
  for (int i = 1; i <= 5; ++i) adapter.answer(toy_images(i));
  EXPECT_TRUE(adapter.stopped());
  const at::Tensor before = parameters_of(adapter);
  EXPECT_TRUE(adapter.answer(toy_images(6)).steps.empty());
  EXPECT_TRUE(same_bytes(before, parameters_of(adapter)));
}

TEST(Adapter, ChangesNoNumberWhenTheGuardOnlyWarns) {
  for (const std::string norm : {"batch", "source", "running", "adaptive", "blend:weight=0.3"}) {
    auto watched_model = toy_model(), plain_model = toy_model();
    MethodOptions options = toy_options("all");
    options.optimizer = "adam:rate=0.1";
    options.norm = norm;
    Adapter plain(*plain_model, options);
    options.guard = "warn:horizon=4,every=1";
    Adapter watched(*watched_model, options);
    bool collapsed = false, asked = false;
    for (int i = 1; i <= 10; ++i) {
      const Answer answer = watched.answer(toy_images(i));
      collapsed = collapsed || (answer.health && answer.health->collapsed);
      asked = asked || (answer.health && answer.health->agreement);
      EXPECT_TRUE(same_bytes(answer.logits, plain.answer(toy_images(i)).logits)) << norm << i;
    }
    EXPECT_TRUE(collapsed) << norm;
    EXPECT_TRUE(asked) << norm;
  }
}

/// Parameters that have hardly moved answer as the source's do, whosever statistics are in use, and after however
/// many batches. One answer in eighty may lie on the edge: `adaptive` counts on while it answers.
TEST(Adapter, NearItsSourceIsAsItsSourceInEveryNormMode) {
  for (const std::string norm : {"batch", "source", "running", "adaptive", "blend:weight=0.3"}) {
    auto model = toy_model();
    MethodOptions options = toy_options("all");
    options.optimizer = "adam:rate=1e-6";
    options.norm = norm;
    options.guard = "warn:horizon=4,every=1,displacement=1e-9";
    Adapter adapter(*model, options);
    double sum = 0;
    for (int i = 1; i <= 20; ++i) {
      const Answer answer = adapter.answer(toy_images(i));
      ASSERT_TRUE(answer.health && answer.health->agreement) << norm << i;
      sum += *answer.health->agreement;
    }
    EXPECT_GE(sum, norm == "adaptive" ? 19.5 : 20) << norm;
  }
}

TEST(Adapter, RefusesWrongSettingsAndShapes) {
  auto model = toy_model();
  EXPECT_THROW(Adapter(*model, {.inner_steps = 0}), ConfigError);
  EXPECT_THROW(Adapter(*model, {.adapt_every = 0}), ConfigError);
  EXPECT_THROW(Adapter(*model, {.loss = "pseudo"}), ConfigError);
  EXPECT_THROW(Adapter(*model, {.exclude = {"*"}}), ConfigError);
  Adapter adapter(*model, {});
  EXPECT_THROW(adapter.answer(at::zeros({3, 8, 8})), Error);
  EXPECT_THROW(adapter.answer(at::zeros({2, 1, 8, 8})), Error);
}

}  // namespace
}  // namespace gala
