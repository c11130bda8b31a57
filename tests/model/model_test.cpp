#include "gala/model/model.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <utility>

#include "gala/base/random.h"
#include "gala/model/layers.h"
#include "tests/model/relative_error.h"

namespace gala {
namespace {

std::unique_ptr<Model> make(const char* spec, std::uint64_t seed = 0) {
  return make_model(Spec::parse(spec), seed);
}

constexpr const char* kSmall = "wide_resnet:depth=10,width=1,classes=5";

at::Tensor images(std::int64_t count, std::int64_t height, std::int64_t width) {
  Random random(3, "images");
  at::Tensor result = at::empty({count, 3, height, width}, at::kFloat);
  float* data = result.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) data[i] = static_cast<float>(random.normal());
  return result;
}

at::Tensor& slot(Model& model, const std::string& name) {
  for (Parameter& parameter : model.parameters()) {
    if (parameter.name == name) return parameter.value;
  }
  for (Buffer& buffer : model.buffers()) {
    if (buffer.name == name) return buffer.value;
  }
  fail("no tensor {}", name);
}

std::string message_of(const char* spec) {
  try {
    make(spec);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(MakeModel, WritesEveryOptionIntoTheSpec) {
  EXPECT_EQ(make("resnet18:classes=7")->spec().to_string(),
            "resnet18:classes=7,norm_epsilon=1e-05");
  EXPECT_EQ(make("resnet50:stride=first")->spec().to_string(),
            "resnet50:classes=1000,stride=first,norm_epsilon=1e-05");
  EXPECT_EQ(make("wide_resnet:depth=10,width=2")->spec().to_string(),
            "wide_resnet:depth=10,width=2,classes=10,norm_epsilon=1e-05");
  EXPECT_EQ(make("resnext29:base_width=8")->spec().to_string(),
            "resnext29:cardinality=4,base_width=8,classes=100,norm_epsilon=1e-05");
  EXPECT_EQ(make(kSmall)->classes(), 5);
}

TEST(MakeModel, RefusesOptionsThatMakeNoNetwork) {
  EXPECT_NE(message_of("wide_resnet:depth=29").find("depth must be 6n + 4"), std::string::npos);
  EXPECT_NE(message_of("wide_resnet:depth=4").find("depth must be 6n + 4"), std::string::npos);
  EXPECT_NE(message_of("wide_resnet:width=0").find("width must be from 1"), std::string::npos);
  EXPECT_EQ(message_of("resnet18:classes=1"),
            "model resnet18: classes must be from 2 to 1000000, not 1");
  EXPECT_NE(message_of("resnet50:norm_epsilon=0").find("norm_epsilon must be above 0"),
            std::string::npos);
  EXPECT_NE(message_of("resnext29:cardinality=0").find("cardinality must be from 1"),
            std::string::npos);
  EXPECT_NE(message_of("resnet18:stride=first").find("has no option \"stride\""),
            std::string::npos);
  EXPECT_NE(message_of("resnet50:stride=third").find("second|first"), std::string::npos);
  EXPECT_NE(message_of("resnet5").find("did you mean \"resnet50\""), std::string::npos);
}

TEST(MakeModel, KnowsHowItsInputsAreMade) {
  EXPECT_EQ(make("resnet18")->preprocessing(), Preprocessing::imagenet());
  EXPECT_EQ(make(kSmall)->preprocessing(), (Preprocessing{.size = 32}));
  const auto resnext = make("resnext29");
  EXPECT_EQ(resnext->preprocessing().size, 32);
  EXPECT_EQ(resnext->preprocessing().mean, (std::array<double, 3>{0.5, 0.5, 0.5}));
  EXPECT_EQ(resnext->preprocessing().std, (std::array<double, 3>{0.5, 0.5, 0.5}));
}

TEST(MakeModel, ListsEveryNetworkWithItsOptions) {
  const auto infos = describe_registry(model_registry());
  ASSERT_EQ(infos.size(), 6u);
  for (const MethodInfo& info : infos) EXPECT_GE(info.options.size(), 2u) << info.name;
}

TEST(Initialize, DependsOnTheSeedAlone) {
  const int threads = at::get_num_threads();
  const auto first = make(kSmall, 11);
  at::set_num_threads(threads == 1 ? 2 : 1);
  const auto second = make(kSmall, 11);
  at::set_num_threads(threads);
  const auto other = make(kSmall, 12);
  for (std::size_t i = 0; i < first->parameters().size(); ++i) {
    const Parameter& parameter = first->parameters()[i];
    EXPECT_TRUE(parameter.value.equal(second->parameters()[i].value)) << parameter.name;
    EXPECT_EQ(parameter.value.equal(other->parameters()[i].value),
              parameter.kind == ModuleKind::kNorm)
        << parameter.name;
  }
}

TEST(Initialize, GivesEachKindItsDistribution) {
  const auto model = make("wide_resnet:depth=10,width=4", 5);
  const at::Tensor kernel = slot(*model, "block3.layer.0.conv2.weight");  // [256, 256, 3, 3]
  const double deviation = std::sqrt(2.0 / (256 * 9));
  EXPECT_NEAR(kernel.std().item<double>() / deviation, 1, 0.005);
  EXPECT_NEAR(kernel.mean().item<double>() / deviation, 0, 0.005);
  // The share of a normal distribution beyond two deviations.
  EXPECT_NEAR((kernel.abs() > 2 * deviation).to(at::kFloat).mean().item<double>(), 0.0455, 0.002);

  for (const char* name : {"fc.weight", "fc.bias"}) {
    const at::Tensor linear = slot(*model, name);
    EXPECT_LE(linear.abs().max().item<double>(), 1.0 / 16) << name;  // 256 inputs
    EXPECT_GT(linear.abs().max().item<double>(), 0.7 / 16) << name;
  }
  EXPECT_NEAR(slot(*model, "fc.weight").std().item<double>(), 1 / 16.0 / std::sqrt(3), 0.001);
  EXPECT_TRUE(slot(*model, "bn1.weight").equal(at::ones({256})));
  EXPECT_TRUE(slot(*model, "bn1.bias").equal(at::zeros({256})));
}

TEST(Initialize, WritesIntoTheTensorsThatLieInTheSlots) {
  const auto model = make(kSmall, 1);
  const at::Tensor before = slot(*model, "conv1.weight").clone();
  const at::Tensor leaf = at::zeros_like(before).set_requires_grad(true);
  slot(*model, "conv1.weight") = leaf;
  slot(*model, "bn1.running_mean").fill_(9);
  slot(*model, "bn1.running_var").fill_(9);
  model->initialize(1);
  EXPECT_TRUE(leaf.equal(before));
  EXPECT_TRUE(leaf.is_leaf() && leaf.requires_grad());
  EXPECT_TRUE(slot(*model, "bn1.running_mean").equal(at::zeros({64})));
  EXPECT_TRUE(slot(*model, "bn1.running_var").equal(at::ones({64})));
}

TEST(Forward, GivesFeaturesAndLogitsForAnySize) {
  const at::NoGradGuard no_grad;
  struct Expected {
    const char* spec;
    std::int64_t features;
  };
  for (const auto& [spec, features] :
       {Expected{"resnet18:classes=5", 512}, Expected{"resnet50:classes=5", 2048},
        Expected{kSmall, 64}, Expected{"resnext29:classes=5,base_width=8", 1024}}) {
    const auto model = make(spec);
    for (const auto& [count, height, width] :
         {std::tuple(1, 32, 32), std::tuple(2, 33, 47), std::tuple(1, 1, 1)}) {
      const Output output = model->forward(images(count, height, width));
      EXPECT_EQ(output.features.sizes(), (at::IntArrayRef{count, features})) << spec;
      EXPECT_EQ(output.logits.sizes(), (at::IntArrayRef{count, 5})) << spec;
      EXPECT_TRUE(output.logits.isfinite().all().item<bool>()) << spec;
    }
  }
}

TEST(Forward, RefusesWhatIsNotABatchOfImages) {
  const auto model = make(kSmall);
  for (const auto& sizes : {std::vector<std::int64_t>{3, 32, 32}, {2, 1, 32, 32}, {0, 3, 32, 32}}) {
    EXPECT_THROW(model->forward(at::zeros(sizes)), Error);
  }
}

TEST(Forward, OfOneImageDoesNotDependOnItsNeighboursUnderSourceStatistics) {
  const at::NoGradGuard no_grad;
  const auto model = make("resnext29:base_width=4,classes=5");
  const at::Tensor batch = images(3, 32, 32);
  const at::Tensor together = model->forward(batch).logits;
  const at::Tensor alone = model->forward(batch.slice(0, 1, 2)).logits;
  EXPECT_TRUE(alone[0].allclose(together[1], 1e-4, 1e-5));
}

TEST(Forward, UsesWhatLiesInTheSlots) {
  const auto model = make(kSmall);
  const at::Tensor batch = images(2, 16, 16);
  const at::Tensor before = model->forward(batch).logits;
  // A view with strides of its own into a larger buffer, as an arena gives out.
  at::Tensor& weight = slot(*model, "conv1.weight");
  const at::Tensor buffer = at::zeros({weight.numel() + 3});
  const at::Tensor view = buffer.slice(0, 3).as_strided(weight.sizes(), {27, 1, 9, 3}, 3);
  view.copy_(weight);
  weight = view.detach().set_requires_grad(true);
  const at::Tensor after = model->forward(batch).logits;
  EXPECT_TRUE(after.allclose(before, 1e-5, 1e-6));
  after.sum().backward();
  EXPECT_GT(weight.grad().abs().sum().item<double>(), 0);
  buffer.mul_(2);
  EXPECT_FALSE(model->forward(batch).logits.allclose(before, 1e-3, 1e-3));
}

/// Images behind the counted ones leave no trace, not in the gradients either.
TEST(Forward, CountsTheFirstImagesAlone) {
  for (const char* spec : {kSmall, "resnet18:classes=5"}) {
    for (const char* norm : {"source", "batch", "blend:weight=0.4", "running"}) {
      auto model = make(spec);
      model->set_norm_mode(NormMode::parse(norm));
      for (Parameter& parameter : model->parameters()) parameter.value.requires_grad_();
      const auto gradient = [&](const Output& output) {
        output.logits.square().mean().backward();
        at::Tensor& first = model->parameters().front().value;
        const at::Tensor found = first.grad().clone();
        for (Parameter& parameter : model->parameters()) parameter.value.mutable_grad().reset();
        return found;
      };
      const at::Tensor all = images(7, 32, 32);
      const Output alone = model->forward(all.narrow(0, 0, 4), /*update_statistics=*/false);
      Output counted = model->forward_counted(all, at::full({}, 4, at::kLong));
      counted.logits = counted.logits.narrow(0, 0, 4);
      counted.features = counted.features.narrow(0, 0, 4);
      // Statistics of four values, layer behind layer, make much of a rounding.
      EXPECT_LT(relative_error(counted.logits, alone.logits), 1e-4) << spec << ' ' << norm;
      EXPECT_LT(relative_error(counted.features, alone.features), 1e-4) << spec << ' ' << norm;
      EXPECT_LT(relative_error(gradient(counted), gradient(alone)), 1e-3) << spec << ' ' << norm;
    }
  }
}

TEST(Forward, MovesStatisticsOnceABatchInRunningMode) {
  const at::NoGradGuard no_grad;
  const auto model = make(kSmall);
  model->set_norm_mode(NormMode::parse("running:momentum=0.5"));
  const at::Tensor batch = images(4, 16, 16);
  model->forward(batch);
  std::vector<at::Tensor> moved;
  for (const Buffer& buffer : model->buffers()) {
    moved.push_back(buffer.value.clone());
    const double start = buffer.name.ends_with("running_var") ? 1 : 0;
    EXPECT_FALSE(buffer.value.equal(at::full_like(buffer.value, start))) << buffer.name;
  }
  model->forward(batch, false);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    EXPECT_TRUE(model->buffers()[i].value.equal(moved[i])) << model->buffers()[i].name;
  }
}

TEST(Forward, NeverChangesStatisticsInTheOtherModes) {
  const at::NoGradGuard no_grad;
  const auto model = make(kSmall);
  for (const char* mode : {"source", "batch", "blend:weight=0.5"}) {
    model->set_norm_mode(NormMode::parse(mode));
    model->forward(images(4, 16, 16));
    for (const Buffer& buffer : model->buffers()) {
      const double start = buffer.name.ends_with("running_var") ? 1 : 0;
      EXPECT_TRUE(buffer.value.equal(at::full_like(buffer.value, start))) << mode;
    }
  }
}

/// Where there is a GPU: in double precision both devices give the same numbers.
TEST(Forward, GivesTheSameOnTheGpu) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  for (const char* spec : {"resnet18:classes=5", kSmall, "resnext29:base_width=4,classes=5"}) {
    for (const NormMode& mode :
         {NormMode::parse("source"), NormMode::parse("batch"), NormMode::parse("blend:weight=0.3"),
          NormMode::parse("running:momentum=0.2"), NormMode{.kind = NormKind::kTraining}}) {
      const at::Tensor batch = images(3, 40, 40).to(at::kDouble);
      std::vector<at::Tensor> seen[2];
      for (const at::DeviceType device : {at::kCPU, at::kCUDA}) {
        const auto model = make(spec, 4);
        model->set_norm_mode(mode);
        for (Parameter& parameter : model->parameters()) {
          parameter.value = parameter.value.to(at::kDouble).set_requires_grad(true);
        }
        for (Buffer& buffer : model->buffers()) buffer.value = buffer.value.to(at::kDouble);
        model->to(device);
        EXPECT_EQ(model->device().type(), device);
        const Output output = model->forward(batch.to(device));
        output.logits.square().mean().backward();
        auto& tensors = seen[device == at::kCUDA];
        tensors.push_back(output.logits.detach().cpu());
        for (const Parameter& parameter : model->parameters()) {
          tensors.push_back(parameter.value.grad().cpu());
        }
        for (const Buffer& buffer : model->buffers()) tensors.push_back(buffer.value.cpu());
      }
      for (std::size_t i = 0; i < seen[0].size(); ++i) {
        const double error = (seen[0][i] - seen[1][i]).norm().item<double>();
        EXPECT_LE(error, 1e-8 * seen[0][i].norm().item<double>())
            << spec << " " << mode.to_string() << " " << i;
      }
    }
  }
}

/// The slots take tensors of any floating type: in double precision, differences are exact enough.
class FiniteDifferences : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(FiniteDifferences, AgreeWithTheGradient) {
  const auto [spec, mode] = GetParam();
  const auto model = make(spec, 2);
  model->set_norm_mode(NormMode::parse(mode));
  const at::Tensor batch = images(3, 17, 17).to(at::kDouble);
  const at::Tensor labels = at::tensor({0, 3, 1}, at::kLong);
  std::vector<at::Tensor> directions;
  for (Parameter& parameter : model->parameters()) {
    Random random(8, parameter.name);
    parameter.value = parameter.value.to(at::kDouble);
    at::Tensor direction = at::empty_like(parameter.value);
    double* data = direction.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < direction.numel(); ++i) data[i] = random.uniform(-1, 1);
    if (parameter.kind == ModuleKind::kNorm) parameter.value += 0.2 * direction;
    directions.push_back(direction);
    parameter.value.set_requires_grad(true);
  }
  for (Buffer& buffer : model->buffers()) buffer.value = buffer.value.to(at::kDouble);
  const auto loss = [&] { return at::cross_entropy_loss(model->forward(batch).logits, labels); };
  loss().backward();

  const at::NoGradGuard no_grad;
  const auto move = [&](double step) {
    for (std::size_t i = 0; i < directions.size(); ++i) {
      model->parameters()[i].value.add_(directions[i], step);
    }
  };
  double slope = 0;
  for (std::size_t i = 0; i < directions.size(); ++i) {
    slope += (model->parameters()[i].value.grad() * directions[i]).sum().item<double>();
  }
  // So small that no relu changes sides between the two points.
  constexpr double kStep = 1e-9;
  move(kStep);
  const double ahead = loss().item<double>();
  move(-2 * kStep);
  const double behind = loss().item<double>();
  EXPECT_NEAR((ahead - behind) / (2 * kStep) / slope, 1, 1e-5) << "slope " << slope;
}

INSTANTIATE_TEST_SUITE_P(
    Networks, FiniteDifferences,
    testing::Combine(testing::Values(kSmall, "resnext29:base_width=4,classes=5"),
                     testing::Values("source", "batch", "blend:weight=0.3", "running:momentum=0")));

TEST(LayerBuilder, RefusesSizesThatNoNumberCounts) {
  std::deque<Parameter> parameters;
  std::deque<Buffer> buffers;
  LayerBuilder build(parameters, buffers, 1e-5);
  build.linear("small", 2, 3);
  constexpr std::int64_t kHalf = std::int64_t{1} << 32;
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  // The first product wraps around to 0, the second sum to less than 0.
  for (const auto& [in, out] : {std::pair{kHalf, kHalf}, std::pair{std::int64_t{1}, kLargest}}) {
    try {
      build.linear("large", in, out);
      ADD_FAILURE() << in << " x " << out;
    } catch (const ConfigError& problem) {
      EXPECT_NE(std::string(problem.what()).find("parameters up to large"), std::string::npos)
          << problem.what();
    }
  }
  EXPECT_EQ(parameters.size(), 2U);
}

}  // namespace
}  // namespace gala
