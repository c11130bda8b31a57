#include "gala/model/norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <limits>

#include "gala/base/error.h"

namespace gala {
namespace {

struct Layer {
  at::Tensor scale = at::tensor({1.5f, -0.5f});
  at::Tensor shift = at::tensor({0.25f, 2.0f});
  at::Tensor mean = at::tensor({0.5f, -1.0f});
  at::Tensor var = at::tensor({2.0f, 0.25f});

  at::Tensor forward(const at::Tensor& input, const NormMode& mode, bool update = true) {
    return batch_norm(input, scale, shift, mean, var, mode, 1e-5, update);
  }
};

/// Two channels with values 1, 2, 3, 6 (mean 3, biased variance 3.5, unbiased 14/3) and 0, 0, 4, 4
/// (mean 2, variance 4, unbiased 16/3).
at::Tensor batch() {
  return at::tensor({1.0f, 2.0f, 0.0f, 0.0f, 3.0f, 6.0f, 4.0f, 4.0f}).view({2, 2, 1, 2});
}

double normal(double value, double mean, double var, double scale, double shift) {
  return (value - mean) / std::sqrt(var + 1e-5) * scale + shift;
}

double at_place(const at::Tensor& tensor, std::int64_t n, std::int64_t c, std::int64_t w) {
  return tensor.index({n, c, 0, w}).item<double>();
}

std::string message_of(const char* text) {
  try {
    NormMode::parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(NormMode, ReadsAndPrintsWhatUsersWrite) {
  for (const char* text :
       {"source", "batch", "blend:weight=0.3", "running:momentum=0.05",
        "adaptive:horizon=100,tolerance=0.06", "balanced:momentum=0.05,common=0.1"}) {
    EXPECT_EQ(NormMode::parse(text).to_string(), text);
  }
  EXPECT_EQ(NormMode::parse("blend").to_string(), "blend:weight=0.5");
  EXPECT_EQ(NormMode::parse("running").to_string(), "running:momentum=0.1");
  EXPECT_EQ(NormMode::parse("balanced").to_string(), "balanced:momentum=0.01,common=0");
  EXPECT_EQ(NormMode::parse("blend:weight=0.3").weight, 0.3);
  EXPECT_EQ(describe_norm_modes().size(), 6u);
}

TEST(NormMode, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(message_of("bach"),
            "unknown norm mode \"bach\" (did you mean \"batch\"? known: source, batch, blend, "
            "running, adaptive, balanced)");
  EXPECT_EQ(message_of("blend:weight=1.5"), "norm mode blend: weight must be from 0 to 1, not 1.5");
  EXPECT_EQ(message_of("running:momentum=-0.1"),
            "norm mode running: momentum must be from 0 to 1, not -0.1");
  EXPECT_EQ(message_of("adaptive:horizon=0"),
            "norm mode adaptive: horizon must be at least 1, not 0");
  EXPECT_EQ(message_of("adaptive:tolerance=-1"),
            "norm mode adaptive: tolerance must not be negative, not -1");
  EXPECT_EQ(message_of("balanced:common=2"),
            "norm mode balanced: common must be from 0 to 1, not 2");
  EXPECT_NE(message_of("source:weight=0.5").find("no option"), std::string::npos);
  EXPECT_NE(message_of("batch:weight=0.5").find("no option"), std::string::npos);
  EXPECT_NE(message_of("training").find("unknown"), std::string::npos);
}

TEST(BatchNorm, SourceUsesTheRunningStatisticsAndLeavesThem) {
  Layer layer;
  const at::Tensor output = layer.forward(batch(), NormMode::parse("source"));
  EXPECT_NEAR(at_place(output, 1, 0, 1), normal(6, 0.5, 2, 1.5, 0.25), 1e-5);
  EXPECT_NEAR(at_place(output, 0, 1, 0), normal(0, -1, 0.25, -0.5, 2), 1e-5);
  EXPECT_TRUE(layer.mean.equal(Layer().mean));
  EXPECT_TRUE(layer.var.equal(Layer().var));
}

TEST(BatchNorm, BatchUsesTheBiasedVarianceOfTheBatchAndLeavesTheRunningOne) {
  Layer layer;
  const at::Tensor output = layer.forward(batch(), NormMode::parse("batch"));
  EXPECT_NEAR(at_place(output, 1, 0, 1), normal(6, 3, 3.5, 1.5, 0.25), 1e-5);
  EXPECT_NEAR(at_place(output, 0, 1, 0), normal(0, 2, 4, -0.5, 2), 1e-5);
  EXPECT_TRUE(layer.mean.equal(Layer().mean));
  EXPECT_TRUE(layer.var.equal(Layer().var));
}

TEST(BatchNorm, BlendMixesMeansAndVariances) {
  Layer layer;
  const at::Tensor output = layer.forward(batch(), NormMode::parse("blend:weight=0.25"));
  EXPECT_NEAR(at_place(output, 1, 0, 1),
              normal(6, 0.25 * 3 + 0.75 * 0.5, 0.25 * 3.5 + 0.75 * 2, 1.5, 0.25), 1e-5);
  EXPECT_NEAR(at_place(output, 0, 1, 0),
              normal(0, 0.25 * 2 - 0.75 * 1, 0.25 * 4 + 0.75 * 0.25, -0.5, 2), 1e-5);
  EXPECT_TRUE(layer.mean.equal(Layer().mean));
  EXPECT_TRUE(layer.var.equal(Layer().var));
}

TEST(BatchNorm, BlendEndsAtSourceAndAtBatch) {
  Layer layer;
  for (const auto& [blend, plain] :
       {std::pair("blend:weight=0", "source"), std::pair("blend:weight=1", "batch")}) {
    EXPECT_TRUE(layer.forward(batch(), NormMode::parse(blend))
                    .allclose(layer.forward(batch(), NormMode::parse(plain)), 1e-5, 1e-6))
        << blend;
  }
}

TEST(BatchNorm, RunningMovesOnceAndOnlyWhenAsked) {
  Layer layer;
  const NormMode mode = NormMode::parse("running:momentum=0.2");
  at::Tensor output = layer.forward(batch(), mode, false);
  EXPECT_TRUE(layer.mean.equal(Layer().mean));
  EXPECT_NEAR(at_place(output, 1, 0, 1), normal(6, 0.5, 2, 1.5, 0.25), 1e-5);

  output = layer.forward(batch(), mode);
  const double mean = 0.8 * 0.5 + 0.2 * 3, var = 0.8 * 2 + 0.2 * 14 / 3;
  EXPECT_NEAR(layer.mean[0].item<double>(), mean, 1e-6);
  EXPECT_NEAR(layer.var[0].item<double>(), var, 1e-6);
  EXPECT_NEAR(layer.var[1].item<double>(), 0.8 * 0.25 + 0.2 * 16 / 3, 1e-6);
  EXPECT_NEAR(at_place(output, 1, 0, 1), normal(6, mean, var, 1.5, 0.25), 1e-5);

  layer.forward(batch(), mode, false);
  EXPECT_NEAR(layer.mean[0].item<double>(), mean, 1e-6);
}

TEST(BatchNorm, RunningStatisticsAreConstantsForTheGradient) {
  Layer layer;
  const at::Tensor input = batch().set_requires_grad(true);
  layer.forward(input, NormMode::parse("running:momentum=0.2")).sum().backward();
  const double slope = 1.5 / std::sqrt(0.8 * 2 + 0.2 * 14 / 3 + 1e-5);
  EXPECT_NEAR(at_place(input.grad(), 0, 0, 0), slope, 1e-5);
}

TEST(BatchNorm, RunningWithGradientIsABlendThatStays) {
  Layer layer, twin;
  const NormMode mode = NormMode::parse("running:momentum=0.25,gradient=yes");
  EXPECT_EQ(mode.to_string(), "running:momentum=0.25,gradient=yes");
  EXPECT_EQ(NormMode::parse("running:momentum=0.25,gradient=no").to_string(),
            "running:momentum=0.25");
  const at::Tensor weights = at::arange(8, at::kFloat).view({2, 2, 1, 2});
  const at::Tensor moved = batch().set_requires_grad(true), mixed = batch().set_requires_grad(true);
  const at::Tensor output = layer.forward(moved, mode);
  (output * weights).sum().backward();
  const at::Tensor blend = twin.forward(mixed, NormMode::parse("blend:weight=0.25"));
  (blend * weights).sum().backward();
  EXPECT_TRUE(at::allclose(output, blend));
  EXPECT_TRUE(at::allclose(moved.grad(), mixed.grad()));
  EXPECT_NEAR(layer.mean[0].item<double>(), 0.75 * 0.5 + 0.25 * 3, 1e-6);
  EXPECT_NEAR(layer.var[1].item<double>(), 0.75 * 0.25 + 0.25 * 4, 1e-6);

  // Where they are not to move they are constants.
  const at::Tensor mean = layer.mean.clone();
  const at::Tensor still = layer.forward(batch(), mode, false);
  EXPECT_TRUE(at::allclose(still, output));
  EXPECT_TRUE(at::equal(layer.mean, mean));

  // A broken picture does not stay in them.
  at::Tensor broken = batch();
  broken[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
  layer.forward(broken, mode);
  EXPECT_EQ(layer.mean[0].item<float>(), mean[0].item<float>());
  EXPECT_NE(layer.mean[1].item<float>(), mean[1].item<float>());
}

TEST(BatchNorm, RunningAllowsAnotherBatchBeforeBackward) {
  Layer once, twice;
  for (Layer* layer : {&once, &twice}) layer->scale.set_requires_grad(true);
  const NormMode mode = NormMode::parse("running:momentum=0.2");
  const at::Tensor weights = at::arange(8, at::kFloat).view({2, 2, 1, 2});
  (once.forward(batch(), mode) * weights).sum().backward();
  const at::Tensor loss = (twice.forward(batch(), mode) * weights).sum();
  twice.forward(3 * batch(), mode);
  loss.backward();
  EXPECT_TRUE(once.scale.grad().equal(twice.scale.grad()));
}

TEST(BatchNorm, TrainingKeepsStatisticsForLater) {
  Layer layer;
  const NormMode mode{.kind = NormKind::kTraining, .momentum = 0.2};
  at::Tensor output = layer.forward(batch(), mode, false);
  EXPECT_TRUE(layer.var.equal(Layer().var));
  EXPECT_NEAR(at_place(output, 1, 0, 1), normal(6, 3, 3.5, 1.5, 0.25), 1e-5);
  output = layer.forward(batch(), mode);
  EXPECT_NEAR(at_place(output, 1, 0, 1), normal(6, 3, 3.5, 1.5, 0.25), 1e-5);
  EXPECT_NEAR(layer.mean[1].item<double>(), 0.8 * -1 + 0.2 * 2, 1e-6);
  EXPECT_NEAR(layer.var[1].item<double>(), 0.8 * 0.25 + 0.2 * 16 / 3, 1e-6);
}

TEST(BatchNorm, GivesNumbersForASingleValueAChannel) {
  const at::Tensor input = at::tensor({4.0f, -3.0f}).view({1, 2, 1, 1});
  for (const NormMode& mode :
       {NormMode::parse("source"), NormMode::parse("batch"), NormMode::parse("blend:weight=0.5"),
        NormMode::parse("blend:weight=1"), NormMode::parse("running:momentum=0.2"),
        NormMode{.kind = NormKind::kTraining, .momentum = 0.2}}) {
    Layer layer;
    layer.scale.set_requires_grad(true);
    const at::Tensor leaf = input.clone().set_requires_grad(true);
    const at::Tensor output = layer.forward(leaf, mode);
    output.square().sum().backward();
    for (const at::Tensor& tensor :
         {output, leaf.grad(), layer.scale.grad(), layer.mean, layer.var}) {
      EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << mode.to_string();
    }
    EXPECT_TRUE(layer.var.equal(Layer().var)) << mode.to_string();
    const double moved = mode.keeps_statistics() ? 0.8 * 0.5 + 0.2 * 4 : 0.5;
    EXPECT_NEAR(layer.mean[0].item<double>(), moved, 1e-6) << mode.to_string();
  }
}

}  // namespace
}  // namespace gala
