#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gala/model/model.h"
#include "gala/model/norm.h"

namespace gala {
namespace {

constexpr double kEpsilon = 1e-5;

/// A norm of two channels whose source statistics stay where they are.
struct Layer {
  at::Tensor scale = at::tensor({1.5f, -0.5f});
  at::Tensor shift = at::tensor({0.25f, 2.0f});
  at::Tensor mean = at::tensor({0.5f, -1.0f});
  at::Tensor var = at::tensor({2.0f, 0.25f});
  NormSource source = {mean.clone(), var.clone()};

  at::Tensor forward(const at::Tensor& input, const char* mode, bool update = true,
                     const at::Tensor& counted = {}) {
    return batch_norm(input, scale, shift, mean, var, NormMode::parse(mode), kEpsilon, update, {},
                      counted, source);
  }
};

/// Two channels with values 1, 2, 3, 6 (mean 3, variance 3.5) and 0, 0, 4, 4 (mean 2, variance 4).
at::Tensor batch() {
  return at::tensor({1.0f, 2.0f, 0.0f, 0.0f, 3.0f, 6.0f, 4.0f, 4.0f}).view({2, 2, 1, 2});
}

constexpr double kSourceMean[] = {0.5, -1}, kSourceVar[] = {2, 0.25};
constexpr double kBatchMean[] = {3, 2}, kBatchVar[] = {3.5, 4};

/// How much of statistics is used in place of the source's, by the formula.
double weight_of(const double (&mean)[2], const double (&var)[2], double tolerance) {
  double distance = 0;
  for (int c = 0; c < 2; ++c) {
    const double wide = kSourceVar[c] + kEpsilon, off = mean[c] - kSourceMean[c];
    const double ratio = std::log((var[c] + kEpsilon) / wide);
    distance += (off * off / wide + ratio * ratio / 2) / 2;
  }
  return distance / (distance + tolerance);
}

TEST(AdaptiveNorm, TakesTheBatchInByItsSizeAndUsesAsMuchAsItIsFar) {
  Layer layer;
  const at::Tensor output = layer.forward(batch(), "adaptive:horizon=8,tolerance=2");
  double mean[2], var[2];
  for (int c = 0; c < 2; ++c) {
    mean[c] = kSourceMean[c] + 0.25 * (kBatchMean[c] - kSourceMean[c]);  // 2 images of 8
    var[c] = kSourceVar[c] + 0.25 * (kBatchVar[c] - kSourceVar[c]);
    EXPECT_NEAR(layer.mean[c].item<double>(), mean[c], 1e-6);
    EXPECT_NEAR(layer.var[c].item<double>(), var[c], 1e-6);
  }
  const double w = weight_of(mean, var, 2);
  for (int c = 0; c < 2; ++c) {
    const double used = kSourceMean[c] + w * (mean[c] - kSourceMean[c]);
    const double wide = kSourceVar[c] + w * (var[c] - kSourceVar[c]);
    const double value = batch().index({1, c, 0, 1}).item<double>();
    EXPECT_NEAR(output.index({1, c, 0, 1}).item<double>(),
                (value - used) / std::sqrt(wide + kEpsilon) * layer.scale[c].item<double>() +
                    layer.shift[c].item<double>(),
                1e-5);
  }
}

TEST(AdaptiveNorm, IsTheBatchsWithoutToleranceAndTheSourcesWithALargeOne) {
  Layer layer;
  EXPECT_TRUE(layer.forward(batch(), "adaptive:horizon=1,tolerance=0")
                  .allclose(Layer().forward(batch(), "batch"), 1e-5, 1e-6));
  EXPECT_TRUE(layer.mean.allclose(at::tensor({3.0f, 2.0f})));
  EXPECT_TRUE(Layer()
                  .forward(batch(), "adaptive:horizon=1,tolerance=1e12")
                  .allclose(Layer().forward(batch(), "source"), 1e-5, 1e-6));
}

TEST(AdaptiveNorm, SaysHowMuchOfOtherStatisticsItUses) {
  Layer layer;
  std::vector<at::Tensor> used;
  layer.source.used = &used;
  layer.forward(batch(), "adaptive:horizon=2,tolerance=2");
  ASSERT_EQ(used.size(), 1u);
  EXPECT_NEAR(used[0].item<double>(), weight_of(kBatchMean, kBatchVar, 2), 1e-6);
  layer.forward(batch(), "batch");
  EXPECT_EQ(used.size(), 1u) << "other modes have nothing to say";
}

TEST(AdaptiveNorm, TheNetworkSaysTheMeanOfItsLayers) {
  const c10::NoGradGuard no_grad;
  const auto model = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=4"), 3);
  at::manual_seed(2);
  const at::Tensor images = at::randn({6, 3, 8, 8});
  EXPECT_FALSE(model->forward(images).moved.defined());
  const auto moved = [&](double tolerance) {
    model->set_norm_mode(
        NormMode::parse(fmt::format("adaptive:horizon=6,tolerance={}", tolerance)));
    return model->forward(images, /*update_statistics=*/false).moved.item<double>();
  };
  EXPECT_EQ(moved(0), 1);
  EXPECT_LT(moved(1e9), 1e-6);
  const double some = moved(1), fewer = moved(3);
  EXPECT_GT(some, fewer);
  EXPECT_LT(some, 1);
  EXPECT_GT(fewer, 0);
}

TEST(AdaptiveNorm, GradientsAreThoseOfABlendOfTheSameWeight) {
  const double w = weight_of(kBatchMean, kBatchVar, 3);
  const at::Tensor weights = at::arange(8, at::kFloat).view({2, 2, 1, 2});
  const at::Tensor ours = batch().set_requires_grad(true), mixed = batch().set_requires_grad(true);
  Layer adaptive, blend;
  (adaptive.forward(ours, "adaptive:horizon=2,tolerance=3") * weights).sum().backward();
  const std::string mode = "blend:weight=" + std::to_string(w);
  (blend.forward(mixed, mode.c_str()) * weights).sum().backward();
  EXPECT_TRUE(at::allclose(ours.grad(), mixed.grad(), 1e-4, 1e-5));
}

TEST(AdaptiveNorm, NeighboursThatAreAlikeCountAsFewer) {
  Layer layer;
  layer.source.spread = at::full({}, 4.0f);
  layer.forward(batch(), "adaptive:horizon=2,tolerance=1");
  EXPECT_NEAR(layer.mean[0].item<double>(), 0.5 + 0.25 * 2.5, 1e-6);
  EXPECT_NEAR(layer.var[1].item<double>(), 0.25 + 0.25 * 3.75, 1e-6);
}

TEST(AdaptiveNorm, StaysWhereItMustNotMove) {
  Layer layer, twin;
  const at::Tensor still = layer.forward(batch(), "adaptive:horizon=4,tolerance=1", false);
  EXPECT_TRUE(layer.mean.equal(Layer().mean));
  EXPECT_TRUE(layer.var.equal(Layer().var));
  // It answers by the statistics that it would have.
  EXPECT_TRUE(still.equal(twin.forward(batch(), "adaptive:horizon=4,tolerance=1")));

  // A broken picture does not stay in them, and other channels take theirs in.
  at::Tensor broken = batch();
  broken[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
  layer.forward(broken, "adaptive:horizon=4,tolerance=1");
  EXPECT_EQ(layer.mean[0].item<float>(), 0.5f);
  EXPECT_NEAR(layer.mean[1].item<double>(), -1 + 0.5 * 3, 1e-6);
}

TEST(AdaptiveNorm, OnlyCountedImagesMakeStatistics) {
  Layer counted, alone;
  const at::Tensor more = at::cat({batch(), at::full({2, 2, 1, 2}, 50.0f)});
  const at::Tensor output =
      counted.forward(more, "adaptive:horizon=1,tolerance=1", false, at::full({}, 2, at::kLong));
  EXPECT_TRUE(output.narrow(0, 0, 2).allclose(
      alone.forward(batch(), "adaptive:horizon=1,tolerance=1", false), 1e-5, 1e-6));
  // And their number is the size of the batch.
  counted.forward(more, "adaptive:horizon=8,tolerance=1", true, at::full({}, 2, at::kLong));
  EXPECT_NEAR(counted.mean[0].item<double>(), 0.5 + 0.25 * 2.5, 1e-6);
}

}  // namespace
}  // namespace gala
