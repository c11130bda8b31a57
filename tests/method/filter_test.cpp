// What pulls back, resets and looks for flat places, against plain formulas.
#include <gtest/gtest.h>

#include <cmath>

#include "gala/base/error.h"
#include "gala/method/fisher.h"
#include "gala/method/kalman.h"
#include "gala/method/reset_rules.h"
#include "gala/method/restore.h"
#include "gala/method/sharpness.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

ParameterArena small_arena() {
  at::manual_seed(9);
  return ParameterArena(std::vector<NamedTensor>{{"a", at::randn({3, 4})}, {"b", at::randn({50})}});
}

const LayerPartition kLayers{{{"a", {0}, 12}, {"b", {1}, 50}}};

TEST(Kalman, NearsTheFilteredCopy) {
  const ParameterArena arena = small_arena();
  const at::Tensor source = arena.values().clone();
  KalmanAfterStep filter({.alpha = 0.9, .gamma = 0.8, .noise = 0.9});
  const double q = 0.9 * 62 / 38400, r = 1 - q;
  at::Tensor hidden = source.to(at::kDouble), theta = hidden.clone(), origin = hidden.clone();
  double variance = 0;
  for (int step = 0; step < 5; ++step) {
    const at::Tensor move = at::randn(source.sizes()) * 0.1;
    arena.values().add_(move);
    theta += move.to(at::kDouble);
    filter.after({arena, source, kLayers}, {});
    hidden = 0.9 * hidden + 0.1 * origin;
    variance = 0.81 * variance + q;
    double beta = std::max(r / (variance + r), 0.89);
    if (beta >= 0.9999) beta = 1;
    variance *= beta;
    hidden = beta * hidden + (1 - beta) * theta;
    theta = 0.8 * theta + 0.2 * hidden;
    EXPECT_TRUE(at::allclose(arena.values().to(at::kDouble), theta, 0, 1e-5)) << step;
    EXPECT_LT(beta, 1);
  }
  EXPECT_THROW(make_after_step("kalman:alpha=2"), ConfigError);
  EXPECT_THROW(make_after_step("restore:share=2"), ConfigError);
}

TEST(Restore, PutsAShareBackDrawnByStep) {
  const ParameterArena arena = small_arena();
  const at::Tensor source = arena.values().clone(), moved = source + 1;
  RestoreAfterStep restore({.share = 0.3});
  const auto after = [&](std::int64_t step, std::uint64_t seed) {
    arena.values().copy_(moved);
    StepRecord record;
    record.step = step;
    restore.after({arena, source, kLayers, seed}, record);
    return arena.values().eq(source);
  };
  std::int64_t back = 0;
  for (int step = 1; step <= 100; ++step) {
    const at::Tensor now = after(step, 0);
    back += now.sum().item<std::int64_t>();
    EXPECT_TRUE(arena.values().eq(moved).logical_or(now).all().item<bool>());
  }
  const double count = 100.0 * static_cast<double>(source.numel());
  EXPECT_NEAR(static_cast<double>(back) / count, 0.3, 5 * std::sqrt(0.21 / count));
  EXPECT_TRUE(at::equal(after(7, 1), after(7, 1)));
  EXPECT_FALSE(at::equal(after(7, 1), after(8, 1)));
  EXPECT_FALSE(at::equal(after(7, 1), after(7, 2)));
}

StepRecord with_loss(double loss) {
  StepRecord record;
  record.loss = loss;
  return record;
}

TEST(Reset, ComesEverySoManySteps) {
  const auto rule = make_reset_rule("every:steps=3");
  std::string due;
  for (int i = 0; i < 7; ++i) {
    const bool now = rule->is_due({}, {});
    due += now ? 'x' : '.';
    if (now) rule->restart();
  }
  EXPECT_EQ(due, "..x..x.");
}

TEST(Reset, ComesWhenTheMeanLossIsTooSmall) {
  const auto rule = make_reset_rule("loss:below=0.2,keep=0.5");
  EXPECT_FALSE(rule->is_due(with_loss(1), {}));
  EXPECT_FALSE(rule->is_due(with_loss(0), {}));  // 0.5
  EXPECT_FALSE(rule->is_due(with_loss(0), {}));  // 0.25
  EXPECT_TRUE(rule->is_due(with_loss(0), {}));   // 0.125
  rule->restart();
  EXPECT_FALSE(rule->is_due(with_loss(0.3), {}));
}

TEST(Reset, ComesWhenAnswersKeepToFewClasses) {
  const auto rule = make_reset_rule("concentration:above=0.5,keep=0");
  EXPECT_FALSE(rule->is_due({}, at::eye(4) * 20));
  at::Tensor one = at::zeros({4, 4});
  one.select(1, 2).fill_(20);
  EXPECT_TRUE(rule->is_due({}, one));
  EXPECT_FALSE(rule->is_due({}, at::full({4, 4}, std::nan(""))));
  for (const char* spec : {"every:steps=0", "loss:keep=2", "concentration:above=2"}) {
    EXPECT_THROW(make_reset_rule(spec), ConfigError) << spec;
  }
}

/// The adapter is the source again, and counts on.
TEST(Reset, TakesTheAdapterBackToTheSource) {
  auto model = toy_model();
  Adapter adapter(*model,
                  {.loss = "entropy", .select = "all", .reset = "every:steps=2", .guard = "off"});
  const at::Tensor source = parameters_of(adapter);
  adapter.answer(toy_images(1));
  EXPECT_FALSE(same_bytes(source, parameters_of(adapter)));
  adapter.answer(toy_images(2));
  EXPECT_TRUE(same_bytes(source, parameters_of(adapter)));
  EXPECT_EQ(adapter.totals().resets, 1);
  EXPECT_EQ(adapter.totals().steps, 2);
}

TEST(Sharpness, LeavesAlongTheGradientAndComesBack) {
  const ParameterArena arena = small_arena();
  const at::Tensor before = arena.values().clone();
  Gradients gradients;
  gradients.tensors = {at::randn({3, 4}), at::Tensor()};
  SharpnessPerturbation sam({.rho = 0.5});
  sam.leave(arena, gradients);
  const at::Tensor way = arena.view(arena.values() - before, 0);
  EXPECT_NEAR(way.norm().item<double>(), 0.5, 1e-5);
  EXPECT_TRUE(
      at::allclose(way, gradients.tensors[0] * (0.5 / gradients.tensors[0].norm()), 1e-4, 1e-6));
  EXPECT_EQ(arena.view(arena.values() - before, 1).abs().max().item<double>(), 0);
  sam.come_back(arena);
  EXPECT_TRUE(same_bytes(before, arena.values()));
  EXPECT_THROW(SharpnessPerturbation({.rho = -1}), ConfigError);
}

/// A step with it is the plain step with the gradient at the other place.
TEST(Sharpness, TakesTheGradientThere) {
  const MethodOptions sharp{.loss = "entropy",
                            .select = "all",
                            .optimizer = "sgd:rate=0.01",
                            .perturb = "sam:rho=0.3",
                            .guard = "off"};
  MethodOptions plain = sharp;
  plain.perturb = "none";
  auto model = toy_model(), twin = toy_model(), third = toy_model();
  Adapter first(*model, sharp), gradient(*twin, plain), there(*third, plain);
  const at::Tensor source = parameters_of(first);
  first.answer(toy_images(1));
  gradient.answer(toy_images(1));
  const at::Tensor uphill = source - parameters_of(gradient);  // rate times the gradient
  there.parameters().values().add_(uphill * (0.3 / uphill.norm()));
  const at::Tensor start = parameters_of(there);
  there.answer(toy_images(1));
  EXPECT_TRUE(
      at::allclose(parameters_of(first) - source, parameters_of(there) - start, 1e-3, 1e-6));
}

TEST(Fisher, IsTheMeanSquareOfBatchGradients) {
  auto model = toy_model();
  const MethodOptions options{.loss = "entropy",
                              .select = "all",
                              .optimizer = "sgd:rate=1",
                              .penalty = "fisher:weight=3,images=6",
                              .guard = "off"};
  const auto images = [] {
    return [n = 0]() mutable { return n < 5 ? toy_images(20 + n++) : at::Tensor{}; };
  };
  Adapter adapter(*model, options, {.source_images = images()});
  const State state = adapter.save();
  // Four images of the first batch, two of the second.
  auto plain = toy_model();
  std::map<std::string, at::Tensor> expected;
  for (const at::Tensor& batch : {toy_images(20), toy_images(21).narrow(0, 0, 2)}) {
    for (Parameter& parameter : plain->parameters()) {
      parameter.value = parameter.value.detach().clone().requires_grad_();
    }
    const at::Tensor logits = plain->forward(batch).logits;
    at::cross_entropy_loss(logits, logits.argmax(1)).backward();
    for (const Parameter& parameter : plain->parameters()) {
      at::Tensor& sum = expected[parameter.name];
      const at::Tensor square = parameter.value.grad().square() / 2;
      sum = sum.defined() ? sum + square : square;
    }
  }
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(at::allclose(state.tensors.at("fisher/" + name), tensor, 1e-4, 1e-9)) << name;
  }
}

TEST(Fisher, LearnsNothingWhereNothingMoves) {
  auto model = toy_model();
  Adapter adapter(*model, {.select = "none", .penalty = "fisher"});
  adapter.answer(toy_images(1));
  EXPECT_NO_THROW(adapter.load(adapter.save()));
}

TEST(Distance, PullsTowardsTheSource) {
  const MethodOptions options{.loss = "entropy",
                              .select = "all",
                              .optimizer = "sgd:rate=0.01",
                              .penalty = "distance:weight=5",
                              .guard = "off"};
  MethodOptions free = options;
  free.penalty = "none";
  auto model = toy_model(), twin = toy_model();
  Adapter held(*model, options), loose(*twin, free);
  const at::Tensor source = parameters_of(held);
  const at::Tensor away = at::ones_like(source) * 0.01;
  held.parameters().values().add_(away);
  loose.parameters().values().add_(away);
  held.answer(toy_images(1));
  loose.answer(toy_images(1));
  const at::Tensor apart = parameters_of(loose) - parameters_of(held);
  for (std::size_t i = 0; i < held.parameters().entries().size(); ++i) {
    const at::Tensor part = held.parameters().view(apart, i);
    // 2 · weight · (θ - θ₀) · rate
    EXPECT_TRUE(at::allclose(part, at::full_like(part, 2 * 5 * 0.01 * 0.01), 0, 1e-6)) << i;
  }
}

}  // namespace
}  // namespace gala
