#include "gala/adapt/adapter.h"

#include <gtest/gtest.h>

#include <limits>

#include "gala/base/error.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

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

TEST(Adapter, CountsPathAndNetDisplacement) {
  auto model = toy_model();
  Adapter adapter(*model, toy_options("fixed:layers=conv1"));
  double path = 0;
  for (int i = 1; i <= 6; ++i) path += adapter.answer(toy_images(i)).steps[0].layers[0].update_norm;
  EXPECT_DOUBLE_EQ(adapter.totals().path[0], path);
  EXPECT_EQ(adapter.totals().weight[0], 6);
  EXPECT_EQ(adapter.totals().weight[1], 0);
  const double net = adapter.net_displacement()[0];
  EXPECT_GT(net, 0);
  EXPECT_LE(net, path * (1 + 1e-6));
  EXPECT_EQ(adapter.net_displacement()[1], 0);
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
