#include "gala/train/trainer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "gala/model/weights.h"
#include "gala/train/result.h"
#include "gala/train/setup.h"
#include "tests/data/support.h"
#include "tests/model/relative_error.h"
#include "tests/train/picture_plan.h"

namespace gala {
namespace {

using test::picture_plan;
using test::PlanRun;
using test::TemporaryFolder;
using test::write_pictures;

const std::filesystem::path kFolder =
    std::filesystem::path(GALA_TEST_BUILD_DIR) / "fixtures" / "train";

/// Trains the fixture's small network on its pictures in file order and compares losses, weights and
/// statistics with what PyTorch left in `last`.
void expect_steps_of_pytorch(TrainPlan plan, const std::string& last,
                             const std::string& losses_file, double tolerance) {
  plan.model.network = "wide_resnet:depth=10,width=1,classes=5";
  plan.model.init = kFolder / "first.pt";
  plan.data.train =
      fmt::format("arrays:images=\"{0}/images.npy\",labels=\"{0}/labels.npy\"", kFolder.string());
  plan.train.batch_size = 8;
  plan.train.epochs = 1;
  Problems problems;
  const Training training = open_training(plan, problems);
  problems.throw_if_any("plan");
  EXPECT_TRUE(training.default_preprocessing);  // a PyTorch checkpoint says nothing of it
  EXPECT_TRUE(training.not_taken.empty());
  Curriculum curriculum = make_curriculum(training, plan);
  curriculum.stream = evaluation_stream(training.train);
  Trainer trainer(*training.model, std::move(curriculum), plan);
  ASSERT_EQ(trainer.steps_total(), 20);
  const NpyArray losses = read_npy(kFolder / losses_file);
  const auto* expected_losses = reinterpret_cast<const double*>(losses.data.data());
  for (int step = 0; trainer.step(); ++step) {
    EXPECT_NEAR(trainer.read_meter().loss, expected_losses[step], tolerance * expected_losses[step])
        << step;
  }

  const std::unique_ptr<Model> expected = make_model(Spec::parse(plan.model.network), 9);
  load_weights(*expected, kFolder / last);
  const std::unique_ptr<Model> first = make_model(Spec::parse(plan.model.network), 9);
  load_weights(*first, kFolder / "first.pt");
  double worst = 0;
  for (std::size_t i = 0; i < expected->parameters().size(); ++i) {
    const Parameter& parameter = training.model->parameters()[i];
    const double error = relative_error(parameter.value, expected->parameters()[i].value);
    EXPECT_LT(error, tolerance) << parameter.name;
    // The agreement is with what moved and not with what stayed.
    EXPECT_GT(relative_error(first->parameters()[i].value, expected->parameters()[i].value),
              10 * tolerance)
        << parameter.name;
    worst = std::max(worst, error);
  }
  for (std::size_t i = 0; i < expected->buffers().size(); ++i) {
    const Buffer& buffer = training.model->buffers()[i];
    const double error = relative_error(buffer.value, expected->buffers()[i].value);
    EXPECT_LT(error, tolerance) << buffer.name;
    worst = std::max(worst, error);
  }
  testing::Test::RecordProperty("worst_relative_error", fmt::format("{:.2e}", worst));
}

TEST(Trainer, TakesTheStepsThatPyTorchTakes) {
  if (!std::filesystem::exists(kFolder / "last.pt")) GTEST_SKIP() << "needs a Python with torch";
  TrainPlan plan;
  plan.train.optimizer = "sgd:rate=0.1,momentum=0.9,nesterov=yes,weight_decay=0.0005";
  plan.train.warmup_epochs = 0.2;
  plan.train.label_smoothing = 0.1;
  expect_steps_of_pytorch(plan, "last.pt", "losses.npy", 1e-4);
}

TEST(Trainer, TakesTheAdamStepsThatPyTorchTakes) {
  if (!std::filesystem::exists(kFolder / "last.pt")) GTEST_SKIP() << "needs a Python with torch";
  TrainPlan plan;
  plan.train.optimizer = "adam:rate=0.001";
  plan.train.schedule = ScheduleKind::kConstant;
  expect_steps_of_pytorch(plan, "last_adam.pt", "losses_adam.npy", 1e-4);
}

TEST(Trainer, GoesOnFromAnyStepToTheSameBytes) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 44);  // five batches of eight and a rest
  const TrainPlan plan = picture_plan(folder.path());
  PlanRun straight(plan);
  ASSERT_EQ(straight.trainer->steps_per_epoch(), 5);
  const std::string expected = straight.finish();
  for (const int stop : {1, 5, 7}) {
    PlanRun before(plan);
    for (int i = 0; i < stop; ++i) before.trainer->step();
    const State state = before.trainer->save();
    PlanRun after(plan, /*threads=*/2);
    after.trainer->load(state);
    EXPECT_EQ(after.trainer->steps_done(), stop);
    EXPECT_EQ(after.finish(), expected) << "stopped after step " << stop;
  }
}

TEST(Trainer, DependsOnItsSeed) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 24);
  TrainPlan plan = picture_plan(folder.path());
  plan.train.epochs = 1;
  const std::string one = PlanRun(plan).finish();
  EXPECT_EQ(PlanRun(plan).finish(), one);
  plan.train.seed = 6;
  EXPECT_NE(PlanRun(plan).finish(), one);
}

TEST(Trainer, RefusesTheStateOfAnotherRun) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 24);
  TrainPlan plan = picture_plan(folder.path());
  const State state = PlanRun(plan).trainer->save();
  plan.train.label_smoothing = 0.125;
  PlanRun other(plan);
  EXPECT_CONTAINS(test::message_of<ConfigError>([&] { other.trainer->load(state); }),
                  "saved with label_smoothing 0.0, this run has 0.125");
  EXPECT_CONTAINS(test::message_of<ConfigError>([&] { other.trainer->load(State{}); }),
                  "not the state of a training run");
}

TEST(Trainer, LearnsWhatCanBeLearned) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 48);
  TrainPlan plan = picture_plan(folder.path());
  plan.data.augmentation = Augmentation::kNone;
  plan.train.epochs = 6;
  PlanRun run(plan);
  const Evaluation before = evaluate(*run.training.model, evaluation_stream(run.training.train), 1);
  run.finish();
  const Evaluation after = evaluate(*run.training.model, evaluation_stream(run.training.train), 1);
  EXPECT_EQ(after.images(), 48);
  EXPECT_LT(before.accuracy(), 0.7);
  EXPECT_GT(after.accuracy(), 0.9);
}

TEST(Trainer, StopsWhenTheLossIsNoLongerFinite) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 24);
  TrainPlan plan = picture_plan(folder.path());
  plan.train.optimizer = "sgd:rate=1e30";
  PlanRun run(plan);
  run.finish();
  EXPECT_CONTAINS(test::message_of<Error>([&] { run.trainer->read_meter(); }), "no longer finite");
}

TEST(TrainingStream, ShowsEveryPictureOnceAnEpochInANewOrder) {
  const DataSource source{
      {"counted", {}},
      {{"one", test::counting_pictures(13, 2)}, {"two", test::counting_pictures(7, 2)}}};
  const Stream stream = training_stream(source, 3, 4);
  ASSERT_EQ(stream.size(), 60);
  std::vector<std::vector<StreamItem>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    epochs.emplace_back(stream.items.begin() + epoch * 20, stream.items.begin() + (epoch + 1) * 20);
    std::set<std::pair<int, int>> seen;
    for (const StreamItem& item : epochs.back()) seen.emplace(item.domain, item.index);
    EXPECT_EQ(seen.size(), 20U);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  // 20 pictures fill two batches of eight; none reaches into the next epoch.
  const auto spans = stream.batches(8);
  ASSERT_EQ(spans.size(), 6U);
  EXPECT_EQ(spans[2].begin, 20);
}

TEST(Evaluate, LeavesTheNetworkAsItWas) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 24);
  PlanRun run(picture_plan(folder.path()));
  const std::string before = weight_hash(*run.training.model);
  evaluate(*run.training.model, evaluation_stream(run.training.train), 1);
  EXPECT_EQ(weight_hash(*run.training.model), before);
  EXPECT_EQ(run.training.model->norm_mode().kind, NormKind::kTraining);
}

TEST(TrainingRecord, TravelsWithWeightsOfHalfTheSize) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 24);
  PlanRun run(picture_plan(folder.path()));
  run.plan.text = "# the plan\n";
  Model& model = *run.training.model;
  save_weights(model, folder / "whole.safetensors");
  run.plan.output.type = WeightType::kFloat16;
  round_weights(model, WeightType::kFloat16);
  TrainingRecord record{
      .plan = run.plan, .settings = run.trainer->settings(), .steps = 6, .kept_step = 6};
  record.evaluation = Evaluation{{{"one", 16, 14}, {"two", 8, 4}}};
  save_trained(model, record, folder / "half.safetensors");

  const WeightFile file = read_weights(folder / "half.safetensors");
  for (const NamedTensor& item : file.tensors) EXPECT_EQ(item.tensor.scalar_type(), at::kHalf);
  EXPECT_EQ(file.metadata.at("training").at("plan"), "# the plan\n");
  EXPECT_EQ(file.metadata.at("training").at("evaluation").at("accuracy"), 0.75);
  EXPECT_EQ(file.metadata.at("training").at("evaluation").at("mean_accuracy"), 0.6875);
  EXPECT_EQ(file.metadata.at("model"), model.spec().to_string());
  EXPECT_LT(std::filesystem::file_size(folder / "half.safetensors"),
            0.6 * static_cast<double>(std::filesystem::file_size(folder / "whole.safetensors")));
  // What was scored is what the file holds, to the bit.
  const std::unique_ptr<Model> loaded = make_model(model.spec(), 1);
  EXPECT_TRUE(load_weights(*loaded, folder / "half.safetensors").preprocessing);
  EXPECT_EQ(weight_hash(*loaded), weight_hash(model));

  EXPECT_TRUE(find_record(folder / "half.safetensors", run.trainer->settings()));
  EXPECT_FALSE(find_record(folder / "half.safetensors", {{"seed", 1}}));
  EXPECT_FALSE(find_record(folder / "missing.safetensors", run.trainer->settings()));
}

TEST(RoundWeights, RefusesWhatFloat16CannotHold) {
  const std::unique_ptr<Model> model =
      make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=3"));
  model->buffers()[1].value.fill_(1e6);
  EXPECT_CONTAINS(test::message_of<Error>([&] { round_weights(*model, WeightType::kFloat16); }),
                  model->buffers()[1].name);
}

TEST(Trainer, LearnsFromThreeViewsOfEveryPicture) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 28);  // three batches of eight and a rest
  TrainPlan plan = picture_plan(folder.path());
  plan.data.augmentation = Augmentation::kAugMix;
  plan.train.consistency = 12;
  PlanRun run(plan);
  EXPECT_EQ(run.trainer->steps_per_epoch(), 3);
  EXPECT_EQ(run.trainer->steps_total(), 6);
  run.trainer->step();
  const Meter meter = run.trainer->read_meter();
  EXPECT_EQ(meter.steps, 1);
  // Eight pictures were answered and not twenty-four.
  EXPECT_EQ(meter.accuracy * 8, std::round(meter.accuracy * 8));
  const State state = run.trainer->save();
  const std::string expected = run.finish();
  PlanRun after(plan, /*threads=*/2);
  after.trainer->load(state);
  EXPECT_EQ(after.finish(), expected);
  plan.train.consistency = 0;
  EXPECT_NE(PlanRun(plan).finish(), expected);
}

TEST(Trainer, LearnsInBfloat16Too) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 48);
  TrainPlan plan = picture_plan(folder.path());
  plan.data.augmentation = Augmentation::kNone;
  plan.train.epochs = 6;
  plan.train.precision = Precision::kBf16;
  PlanRun run(plan);
  run.finish();
  for (const Parameter& parameter : run.training.model->parameters()) {
    EXPECT_EQ(parameter.value.scalar_type(), at::kFloat) << parameter.name;
  }
  const Evaluation after = evaluate(*run.training.model, evaluation_stream(run.training.train), 1);
  EXPECT_GT(after.accuracy(), 0.9);
  EXPECT_EQ(run.training.model->precision(), Precision::kBf16);
}

TEST(ViewDivergence, IsTheEntropyOfTheMeanMinusTheMeanEntropy) {
  at::manual_seed(1);
  const at::Tensor logits = at::randn({12, 5}, at::kDouble) * 3;
  const at::Tensor shares = logits.softmax(1).view({3, 4, 5});
  const auto entropy = [](const at::Tensor& p) { return -(p * p.log()).sum(-1); };
  const at::Tensor expected = (entropy(shares.mean(0)) - entropy(shares).mean(0)).mean();
  EXPECT_NEAR(view_divergence(logits, 3).item<double>(), expected.item<double>(), 1e-12);
  EXPECT_NEAR(view_divergence(logits.narrow(0, 0, 4).repeat({3, 1}), 3).item<double>(), 0, 1e-12);
  // Certain and opposed answers: the mean has entropy log 3 and each view none.
  const at::Tensor opposed = at::eye(3, at::kDouble) * 1000;
  EXPECT_NEAR(view_divergence(opposed, 3).item<double>(), std::log(3.0), 1e-12);
}

TEST(CrossEntropy, EqualsItsFormula) {
  const at::Tensor logits = at::tensor({1.0, 2.0, 0.5, -1.0, 0.0, 3.0}, at::kDouble).view({2, 3});
  const at::Tensor labels = at::tensor({1, 0}, at::kLong);
  const auto log_softmax = [&](int row, int column) {
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += std::exp(logits[row][c].item<double>());
    return logits[row][column].item<double>() - std::log(sum);
  };
  double plain = 0, smooth = 0;
  for (int row = 0; row < 2; ++row) {
    const int label = row == 0 ? 1 : 0;
    plain -= log_softmax(row, label) / 2;
    for (int c = 0; c < 3; ++c) smooth -= ((c == label ? 0.7 : 0) + 0.1) * log_softmax(row, c) / 2;
  }
  EXPECT_NEAR(cross_entropy(logits, labels).item<double>(), plain, 1e-12);
  EXPECT_NEAR(cross_entropy(logits, labels, 0.3).item<double>(), smooth, 1e-12);
}

}  // namespace
}  // namespace gala
