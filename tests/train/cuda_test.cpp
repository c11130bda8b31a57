// Training on a GPU against the CPU. Skipped where there is none.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gala/model/weights.h"
#include "gala/train/evaluate.h"
#include "gala/train/setup.h"
#include "gala/train/trainer.h"
#include "tests/data/support.h"
#include "tests/train/domainbed_tree.h"

namespace gala {
namespace {

class TrainOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "needs a GPU";
    test::write_domainbed_tree(folder_ / "set", 8);
  }
  void TearDown() override { allow_tf32(Precision::kFloat32); }

  /// The network after the plan's steps.
  std::unique_ptr<Model> train(int steps, at::Device device, Precision precision,
                               const std::string& optimizer) {
    Problems problems;
    TrainPlan plan = parse_train_plan(test::domainbed_plan(folder_ / "set", steps), problems);
    plan.train.precision = precision;
    plan.train.optimizer = optimizer;
    Training training = open_training(plan, problems);
    problems.throw_if_any("plan");
    allow_tf32(precision);
    training.model->to(device);
    Trainer trainer(*training.model, make_curriculum(training, plan), plan, 2);
    while (trainer.step()) {
    }
    EXPECT_TRUE(std::isfinite(trainer.read_meter().loss));
    evaluation_ = evaluate(*training.model, evaluation_stream(*training.evaluation), 2);
    return std::move(training.model);
  }

  /// The network before the first step.
  std::unique_ptr<Model> first_network(int steps) const {
    Problems problems;
    const TrainPlan plan = parse_train_plan(test::domainbed_plan(folder_ / "set", steps), problems);
    return open_training(plan, problems).model;
  }

  test::TemporaryFolder folder_;
  Evaluation evaluation_;
};

TEST_F(TrainOnGpu, TakesTheStepsThatTheCpuTakes) {
  // Without momentum and few steps, so that rounding has no time to grow.
  const std::string optimizer = "sgd:rate=0.02";
  const auto cpu = train(4, at::kCPU, Precision::kFloat32, optimizer);
  const auto gpu = train(4, at::kCUDA, Precision::kFloat32, optimizer);
  const auto first = first_network(4);
  EXPECT_EQ(gpu->memory_format(), at::MemoryFormat::ChannelsLast);
  for (std::size_t i = 0; i < cpu->parameters().size(); ++i) {
    const at::Tensor expected = cpu->parameters()[i].value.detach();
    const at::Tensor value = gpu->parameters()[i].value.detach().cpu();
    // Gradients of equal networks can part by percents where a relu lies within rounding of zero, so
    // the way from the first weights is the measure, not the weights.
    const double way = (expected - first->parameters()[i].value).norm().item<double>();
    const double error = (value - expected).norm().item<double>();
    EXPECT_GT(way, 0) << cpu->parameters()[i].name;
    EXPECT_LT(error, 0.1 * way + 1e-6) << cpu->parameters()[i].name;
  }
}

TEST_F(TrainOnGpu, LearnsInEveryPrecision) {
  for (const Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBf16}) {
    const auto model = train(40, at::kCUDA, precision, "adam:rate=0.003");
    EXPECT_GT(evaluation_.mean_accuracy(), 0.8) << format_value(precision);
    for (const Parameter& parameter : model->parameters()) {
      EXPECT_EQ(parameter.value.scalar_type(), at::kFloat) << parameter.name;
    }
    save_weights(*model, folder_ / "a.safetensors");
    const auto loaded = make_model(model->spec(), 9);
    load_weights(*loaded, folder_ / "a.safetensors");
    EXPECT_EQ(weight_hash(*loaded), weight_hash(*model));
  }
}

}  // namespace
}  // namespace gala
