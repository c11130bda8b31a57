#include "gala/model/balanced_norm.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "gala/model/model.h"
#include "gala/model/norm.h"

namespace gala {
namespace {

constexpr double kEpsilon = 1e-5;

/// Statistics by the published formulas, number by number.
struct Plain {
  std::vector<std::vector<double>> mean, variance;  ///< [class][channel]
  std::vector<double> all_mean, all_variance;

  Plain(std::size_t classes, const at::Tensor& source_mean, const at::Tensor& source_variance) {
    std::vector<double> first_mean, first_variance;
    for (std::int64_t c = 0; c < source_mean.numel(); ++c) {
      first_mean.push_back(source_mean[c].item<double>());
      first_variance.push_back(source_variance[c].item<double>());
    }
    mean.assign(classes, first_mean);
    variance.assign(classes, first_variance);
    mix();
  }

  void take(const at::Tensor& maps, const std::vector<std::int64_t>& labels, double eta,
            double gamma) {
    const at::Tensor values = maps.to(at::kDouble);
    for (std::size_t c = 0; c < all_mean.size(); ++c) take_channel(values, labels, eta, gamma, c);
    mix();
  }

 private:
  void take_channel(const at::Tensor& values, const std::vector<std::int64_t>& labels, double eta,
                    double gamma, std::size_t channel) {
    const std::size_t classes = mean.size();
    std::vector<double> number(classes), step(classes), square(classes);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < 0) continue;
      const auto k = static_cast<std::size_t>(labels[i]);
      const at::Tensor map =
          values[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(channel)].flatten();
      const double size = static_cast<double>(map.numel());
      ++number[k];
      for (std::int64_t p = 0; p < map.numel(); ++p) {
        const double apart = map[p].item<double>() - mean[k][channel];
        step[k] += apart / size;
        square[k] += apart * apart / size;
      }
    }
    double present = 0, mean_step = 0, mean_square = 0, mean_share = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      if (number[k] == 0) continue;
      const double share = number[k] > 1 / eta ? 1 / number[k] : eta;
      step[k] *= share;
      square[k] *= share;
      ++present;
      mean_step += step[k];
      mean_square += square[k] - step[k] * step[k];
      mean_share += share * number[k];
      double& own = variance[k][channel];
      own += (1 - gamma) * (square[k] - share * number[k] * own - step[k] * step[k]);
      mean[k][channel] += (1 - gamma) * step[k];
    }
    for (std::size_t k = 0; k < classes && present > 0; ++k) {
      mean[k][channel] += gamma * mean_step / present;
      double& own = variance[k][channel];
      own += gamma * (mean_square / present - mean_share / present * own);
    }
  }

  void mix() {
    const auto classes = static_cast<double>(mean.size());
    all_mean.assign(mean[0].size(), 0);
    all_variance = all_mean;
    for (std::size_t c = 0; c < all_mean.size(); ++c) {
      for (const auto& each : mean) all_mean[c] += each[c] / classes;
      for (std::size_t k = 0; k < mean.size(); ++k) {
        const double apart = mean[k][c] - all_mean[c];
        all_variance[c] += variance[k][c] / classes + apart * apart / (classes - 1);
      }
    }
  }
};

/// A norm of three channels and four classes.
struct Layer {
  at::Tensor scale = at::tensor({1.5, -0.5, 1.0}, at::kDouble);
  at::Tensor shift = at::tensor({0.25, 2.0, 0.0}, at::kDouble);
  at::Tensor mean = at::tensor({0.5, -1.0, 0.0}, at::kDouble);
  at::Tensor var = at::tensor({2.0, 0.25, 1.0}, at::kDouble);
  NormSource source;

  Layer() {
    source.class_mean = at::stack({mean, mean, mean, mean});
    source.class_variance = at::stack({var, var, var, var});
  }
  at::Tensor forward(const at::Tensor& input, const std::vector<std::int64_t>& labels,
                     const char* mode, bool update = true) {
    source.labels = at::tensor(labels, at::kLong);
    return batch_norm(input, scale, shift, mean, var, NormMode::parse(mode), kEpsilon, update, {},
                      {}, source);
  }
};

at::Tensor maps(std::int64_t seed, std::int64_t images = 6) {
  at::manual_seed(static_cast<std::uint64_t>(seed));
  return at::randn({images, 3, 4, 5}, at::kDouble) * 1.7 + 0.4;
}

void expect_channels(const at::Tensor& ours, const std::vector<double>& plain) {
  for (std::size_t c = 0; c < plain.size(); ++c) {
    EXPECT_NEAR(ours[static_cast<std::int64_t>(c)].item<double>(), plain[c], 1e-12);
  }
}

TEST(BalancedNorm, IsThePlainOne) {
  const std::vector<std::vector<std::int64_t>> streams[] = {
      {{0, 0, 0, 1, 1, 3}, {2, 2, 2, 2, 2, 2}, {3, 1, 3, 1, 0, 2}},
      {{1, 1, 1, 1, 1, 1}, {1, 1, 1, -1, 1, 1}, {-1, -1, -1, -1, -1, -1}}};
  const std::pair<const char*, std::pair<double, double>> settings[] = {
      {"balanced:momentum=0.05,common=0", {0.05, 0}},
      {"balanced:momentum=0.05,common=0.3", {0.05, 0.3}},
      // Three and six of a class are more than 1 / momentum, one and two are not.
      {"balanced:momentum=0.4,common=0.1", {0.4, 0.1}},
      {"balanced:momentum=1,common=1", {1, 1}}};
  for (const auto& stream : streams) {
    for (const auto& [mode, numbers] : settings) {
      Layer layer;
      Plain plain(4, layer.mean, layer.var);
      for (std::size_t b = 0; b < stream.size(); ++b) {
        const at::Tensor batch = maps(static_cast<std::int64_t>(b));
        const at::Tensor output = layer.forward(batch, stream[b], mode);
        plain.take(batch, stream[b], numbers.first, numbers.second);
        expect_channels(layer.mean, plain.all_mean);
        expect_channels(layer.var, plain.all_variance);
        for (std::int64_t k = 0; k < 4; ++k) {
          expect_channels(layer.source.class_mean[k], plain.mean[static_cast<std::size_t>(k)]);
          expect_channels(layer.source.class_variance[k],
                          plain.variance[static_cast<std::size_t>(k)]);
        }
        const double normal = (batch[2][1][3][4].item<double>() - plain.all_mean[1]) /
                              std::sqrt(plain.all_variance[1] + kEpsilon);
        EXPECT_NEAR(output[2][1][3][4].item<double>(), normal * -0.5 + 2, 1e-12);
      }
    }
  }
}

/// Where a batch is of one class and larger than 1 / momentum, that class becomes the batch.
TEST(BalancedNorm, AClassWithEnoughImagesIsItsImages) {
  Layer layer;
  const at::Tensor batch = maps(1), before = layer.mean.clone();
  layer.forward(batch, {2, 2, 2, 2, 2, 2}, "balanced:momentum=0.2");
  const auto [variance, mean] = at::var_mean(batch, at::IntArrayRef{0, 2, 3}, at::Scalar(0));
  EXPECT_TRUE(layer.source.class_mean[2].allclose(mean, 1e-12, 1e-12));
  EXPECT_TRUE(layer.source.class_variance[2].allclose(variance, 1e-12, 1e-12));
  EXPECT_TRUE(layer.source.class_mean[1].equal(Layer().mean));
  EXPECT_TRUE(layer.mean.allclose(0.75 * before + 0.25 * mean, 1e-12, 1e-12));
}

/// What moves all classes alike is running statistics: a batch of one class takes the share momentum · images,
/// and the variance is that of the mixture.
TEST(BalancedNorm, WithAllInCommonItIsRunning) {
  Layer layer;
  const at::Tensor batch = maps(2), before = layer.mean.clone(), wide = layer.var.clone();
  layer.forward(batch, {0, 0, 0, 0, 0, 0}, "balanced:momentum=0.05,common=1");
  const auto [variance, mean] = at::var_mean(batch, at::IntArrayRef{0, 2, 3}, at::Scalar(0));
  const double share = 0.05 * 6;
  EXPECT_TRUE(layer.mean.allclose(before + share * (mean - before), 1e-12, 1e-12));
  const at::Tensor mixed =
      (1 - share) * wide + share * variance + share * (1 - share) * (mean - before).square();
  EXPECT_TRUE(layer.var.allclose(mixed, 1e-12, 1e-12));
}

TEST(BalancedNorm, ACommonClassDoesNotDrownARareOne) {
  Layer even, uneven;
  at::Tensor rare = maps(3, 1), common = maps(4, 1) + 5;
  even.forward(at::cat({rare, common}), {0, 1}, "balanced:momentum=1");
  uneven.forward(at::cat({rare, common, common, common, common}), {0, 1, 1, 1, 1},
                 "balanced:momentum=1");
  EXPECT_TRUE(even.mean.allclose(uneven.mean, 1e-12, 1e-12));
  EXPECT_TRUE(even.var.allclose(uneven.var, 1e-12, 1e-12));
}

TEST(BalancedNorm, GradientsFlowThroughTheBatchsShare) {
  const std::vector<std::int64_t> labels = {0, 0, 1, 3, -1, 0};
  const char* mode = "balanced:momentum=0.4,common=0.3";
  const at::Tensor weights = maps(7).square();
  const auto loss = [&](const at::Tensor& input) {
    return (Layer().forward(input, labels, mode) * weights).sum();
  };
  const at::Tensor input = maps(5).set_requires_grad(true);
  loss(input).backward();
  const c10::NoGradGuard no_grad;
  constexpr double kStep = 1e-6;
  for (const std::int64_t place : {0, 17, 77, 130, 200, 301}) {
    const auto moved = [&](double by) {
      at::Tensor other = input.detach().clone();
      other.view(-1)[place] += by;
      return loss(other).item<double>();
    };
    const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR(input.grad().view(-1)[place].item<double>(), slope, 1e-5 * (1 + std::abs(slope)));
  }
}

TEST(BalancedNorm, StaysWhereItMustNotMove) {
  const char* mode = "balanced:momentum=0.4";
  Layer layer;
  layer.forward(maps(1), {0, 0, 1, 1, 2, 3}, mode);
  const at::Tensor mean = layer.mean.clone(), classes = layer.source.class_mean.clone();
  const at::Tensor still = layer.forward(maps(2), {}, mode, /*update=*/false);
  EXPECT_TRUE(layer.mean.equal(mean));
  EXPECT_TRUE(layer.source.class_mean.equal(classes));
  const at::Tensor constants = batch_norm(maps(2), layer.scale, layer.shift, layer.mean, layer.var,
                                          NormMode::parse("source"), kEpsilon, false);
  EXPECT_TRUE(still.allclose(constants, 1e-12, 1e-12));
}

/// An image that is not finite counts in no class, and the others as if it were not there.
TEST(BalancedNorm, ABrokenImageIsOfNoClass) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e200}) {
    at::Tensor broken = maps(1);
    broken[3][1][0][0] = value;
    Layer layer, without;
    const char* mode = "balanced:momentum=0.3,common=0.2";
    const at::Tensor output = layer.forward(broken, {0, 0, 1, 1, 2, 3}, mode);
    without.forward(maps(1), {0, 0, 1, -1, 2, 3}, mode);
    EXPECT_TRUE(layer.mean.allclose(without.mean, 1e-12, 1e-12)) << value;
    EXPECT_TRUE(layer.source.class_variance.allclose(without.source.class_variance, 1e-12, 1e-12));
    EXPECT_TRUE(at::isfinite(output[2]).all().item<bool>());
  }
}

TEST(BalancedNorm, ASumThatDoesNotFitIsNotTakenIn) {
  NormStatistics classes{at::zeros({2, 1}), at::ones({2, 1})};
  NormStatistics running{at::zeros({1}), at::ones({1})};
  const at::Tensor large = at::full({1, 1, 2, 2}, 1e30f);
  balanced_statistics(large, at::zeros({1}, at::kLong), classes, running, 0.5, 0);
  for (const at::Tensor& each : {classes.mean, classes.variance, running.mean, running.variance}) {
    EXPECT_TRUE(at::isfinite(each).all().item<bool>());
  }
}

TEST(BalancedNorm, SaysWhatItNeeds) {
  Layer layer;
  layer.source = {};
  EXPECT_ANY_THROW(batch_norm(maps(1), layer.scale, layer.shift, layer.mean, layer.var,
                              NormMode::parse("balanced"), kEpsilon, true));
}

/// A network asks itself for the classes of images, with its statistics as they are, and its norms take them in.
TEST(BalancedNorm, ANetworkTakesItsOwnAnswersForLabels) {
  const c10::NoGradGuard no_grad;
  const auto model = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=4"), 3);
  at::manual_seed(2);
  const at::Tensor images = at::randn({16, 3, 8, 8});
  model->set_norm_mode(NormMode::parse("balanced:momentum=0.3"));
  const at::Tensor still = model->forward(images, /*update_statistics=*/false).logits;
  const at::Tensor answers = still.argmax(1);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 16; ++i) labels.push_back(answers[i].item<std::int64_t>());
  EXPECT_GT(std::get<0>(at::_unique(answers)).numel(), 1);

  // The first norm stands behind the first convolution.
  const at::Tensor seen =
      at::conv2d(images, model->parameters()[0].value, {}, /*stride=*/1, /*padding=*/1);
  const Buffer& mean = model->buffers()[0];
  const Buffer& variance = model->buffers()[1];
  Plain plain(4, mean.value, variance.value);
  plain.take(seen, labels, 0.3, 0);
  const at::Tensor moved = model->forward(images).logits;
  EXPECT_FALSE(moved.allclose(still));
  for (std::size_t c = 0; c < plain.all_mean.size(); ++c) {
    const auto channel = static_cast<std::int64_t>(c);
    EXPECT_NEAR(mean.value[channel].item<double>(), plain.all_mean[c], 1e-5);
    EXPECT_NEAR(variance.value[channel].item<double>(), plain.all_variance[c], 1e-5);
    EXPECT_NEAR(mean.by_class[labels[0]][channel].item<double>(),
                plain.mean[static_cast<std::size_t>(labels[0])][c], 1e-5);
  }
}

/// Who borrows the model begins with other statistics of classes, and leaves these.
TEST(BalancedNorm, ALoanGivesTheStatisticsOfClassesBack) {
  const c10::NoGradGuard no_grad;
  const auto model = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=4"), 3);
  model->set_norm_mode(NormMode::parse("balanced:momentum=0.3"));
  at::manual_seed(2);
  model->forward(at::randn({16, 3, 8, 8}));
  std::vector<at::Tensor> before, copies;
  for (const Buffer& buffer : model->buffers()) {
    before.push_back(buffer.by_class);
    copies.push_back(buffer.by_class.clone());
  }
  {
    const Model::Loan loan(*model);
    EXPECT_EQ(model->statistics().size(), before.size()) << "none of classes";
    model->set_norm_mode(NormMode::parse("balanced:momentum=0.5"));
    model->forward(at::randn({16, 3, 8, 8}));
  }
  EXPECT_EQ(model->norm_mode().to_string(), NormMode::parse("balanced:momentum=0.3").to_string());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(model->buffers()[i].by_class.is_same(before[i]));
    EXPECT_TRUE(before[i].equal(copies[i]));
  }
}

}  // namespace
}  // namespace gala
