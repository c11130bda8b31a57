// Training on several domains at once, as DomainBed does it, and the choice of a checkpoint.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "gala/model/weights.h"
#include "gala/train/checkpoint_choice.h"
#include "gala/train/setup.h"
#include "gala/train/trainer.h"
#include "tests/data/support.h"
#include "tests/train/domainbed_tree.h"

namespace gala {
namespace {

using test::counting_pictures;
using test::TemporaryFolder;

DataSource three_domains() {
  return {{"counted", {}},
          {{"one", counting_pictures(5, 2)},
           {"two", counting_pictures(40, 2)},
           {"three", counting_pictures(11, 2)}}};
}

TEST(SampledStream, HoldsAsManyPicturesOfEveryDomainInEveryBatch) {
  const Stream stream = sampled_stream(three_domains(), 50, 4, 7);
  const auto spans = stream.batches(12);
  ASSERT_EQ(spans.size(), 50U);
  for (const BatchSpan& span : spans) {
    for (std::int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(stream.items[static_cast<std::size_t>(span.begin + i)].domain, i / 4);
    }
  }
}

TEST(SampledStream, DrawsWithReplacementAndEvenly) {
  constexpr std::int64_t kSteps = 2000;
  const Stream stream = sampled_stream(three_domains(), kSteps, 4, 7);
  std::map<std::pair<int, int>, int> counts;
  int repeated = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    std::set<int> seen;
    for (std::int64_t i = 0; i < 4; ++i) {
      seen.insert(stream.items[static_cast<std::size_t>(step * 12 + i)].index);
    }
    repeated += seen.size() < 4;
  }
  for (const StreamItem& item : stream.items) ++counts[{item.domain, item.index}];
  ASSERT_EQ(counts.size(), 56U);  // every picture was drawn
  for (const auto& [place, count] : counts) {
    const double size = std::array{5.0, 40.0, 11.0}[static_cast<std::size_t>(place.first)];
    const double expected = kSteps * 4 / size;
    EXPECT_NEAR(count, expected, 5 * std::sqrt(expected)) << place.first << " " << place.second;
  }
  // Four draws from five are all different with probability 5!/5^4 = 0.192.
  EXPECT_NEAR(repeated, kSteps * (1 - 0.192), 5 * std::sqrt(kSteps * 0.192 * 0.808));
}

TEST(SampledStream, DependsOnSeedAndStepAlone) {
  const Stream one = sampled_stream(three_domains(), 8, 4, 7);
  const Stream longer = sampled_stream(three_domains(), 12, 4, 7);
  EXPECT_TRUE(std::equal(one.items.begin(), one.items.end(), longer.items.begin()));
  EXPECT_NE(sampled_stream(three_domains(), 8, 4, 8).items, one.items);
}

TEST(RepeatBatches, RepeatsFullBatchesAndLeavesTheRestOut) {
  const DataSource source{{"counted", {}}, {{"one", counting_pictures(11, 2)}}};
  const Stream stream = training_stream(source, 2, 3);
  const Stream repeated = repeat_batches(stream, 4, 3);
  const auto spans = stream.batches(4);
  const auto wide = repeated.batches(12);
  ASSERT_EQ(spans.size(), 4U);
  ASSERT_EQ(wide.size(), 4U);
  for (std::size_t b = 0; b < wide.size(); ++b) {
    EXPECT_EQ(wide[b].segment, spans[b].segment);
    for (std::int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(repeated.items[static_cast<std::size_t>(wide[b].begin + i)],
                stream.items[static_cast<std::size_t>(spans[b].begin + i % 4)]);
    }
  }
}

/// A network whose first parameter says which weights it holds.
class Choice : public testing::Test {
 protected:
  std::unique_ptr<Model> model_ = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=3"));

  void mark(double value) {
    model_->parameters()[0].value.fill_(value);
    model_->buffers()[0].value.fill_(value);
  }
  double marked() const {
    const double mark = model_->parameters()[0].value.flatten()[0].item<double>();
    EXPECT_EQ(model_->buffers()[0].value.flatten()[0].item<double>(), mark);
    return mark;
  }
  static Evaluation scored(std::int64_t one, std::int64_t two) {
    return {{{"one", 10, one}, {"two", 100, two}}};
  }
};

TEST_F(Choice, KeepsTheBestMeanOverDomainsAndTheFirstOfEquals) {
  CheckpointChoice choice(Keep::kBest);
  const std::vector<std::pair<std::int64_t, std::int64_t>> scores = {
      {5, 50},   // 0.5
      {9, 55},   // 0.725: the best mean
      {6, 80},   // 0.7, though more images are right
      {10, 45},  // 0.725 again
      {4, 90}};  // 0.65
  for (std::size_t i = 0; i < scores.size(); ++i) {
    mark(static_cast<double>(i));
    const bool best = choice.consider(*model_, scored(scores[i].first, scores[i].second),
                                      static_cast<std::int64_t>(300 * i + 1));
    EXPECT_EQ(best, i <= 1) << i;
  }
  EXPECT_EQ(choice.kept_step(5001), 301);
  choice.restore(*model_);
  EXPECT_EQ(marked(), 1);
  ASSERT_EQ(choice.history().size(), 5U);
  EXPECT_EQ(choice.history()[2].at("step"), 601);
  EXPECT_DOUBLE_EQ(choice.history()[2].at("accuracy"), 0.7);
  EXPECT_DOUBLE_EQ(choice.history()[2].at("domains").at("two"), 0.8);
}

TEST_F(Choice, GoesOnFromAState) {
  CheckpointChoice before(Keep::kBest);
  mark(1);
  before.consider(*model_, scored(9, 90), 1);
  mark(2);
  before.consider(*model_, scored(1, 10), 4);
  State state;
  before.save(state);
  CheckpointChoice after(Keep::kBest);
  after.load(state, *model_);
  EXPECT_TRUE(after.considered(4));
  EXPECT_FALSE(after.considered(1));
  mark(3);
  EXPECT_FALSE(after.consider(*model_, scored(9, 90), 7));
  after.restore(*model_);
  EXPECT_EQ(marked(), 1);
  state.tensors.erase("best/" + model_->parameters()[0].name);
  EXPECT_CONTAINS(
      test::message_of<Error>([&] { CheckpointChoice(Keep::kBest).load(state, *model_); }),
      "lacks best/");
  EXPECT_CONTAINS(
      test::message_of<Error>([&] { CheckpointChoice(Keep::kBest).load(State{}, *model_); }),
      "lacks the choice");
}

TEST_F(Choice, LeavesTheLastWeightsWhenAsked) {
  CheckpointChoice choice(Keep::kLast);
  mark(1);
  choice.consider(*model_, scored(9, 90), 1);
  mark(2);
  choice.consider(*model_, scored(1, 10), 4);
  EXPECT_EQ(choice.kept_step(9), 9);
  choice.restore(*model_);
  EXPECT_EQ(marked(), 2);
}

/// A miniature set, trained as its plan says.
struct MiniatureRun {
  explicit MiniatureRun(const std::filesystem::path& root, int steps,
                        std::vector<PlanSetting> settings = {}) {
    Problems problems;
    plan = parse_train_plan(test::domainbed_plan(root, steps), problems, settings);
    training = open_training(plan, problems);
    problems.throw_if_any("plan");
    trainer = std::make_unique<Trainer>(*training.model, make_curriculum(training, plan), plan, 1);
  }
  TrainPlan plan;
  Training training;
  std::unique_ptr<Trainer> trainer;
};

TEST(DomainBedTraining, LeavesOneEnvironmentOutAndTakesTheClassesFromTheData) {
  const TemporaryFolder folder;
  test::write_domainbed_tree(folder / "set", 5);
  const MiniatureRun run(folder / "set", 10, {{"env", "2"}, {"trial", "11"}});
  ASSERT_EQ(run.training.train.domains.size(), 3U);
  EXPECT_EQ(run.training.train.domains[1].name, "cartoon");
  EXPECT_EQ(run.training.train.domains[2].name, "sketch");
  EXPECT_EQ(run.training.model->classes(), 3);
  EXPECT_EQ(run.training.model->class_names(), test::kClasses);
  // The split is that of the environment's own number: sketch is 3 whatever is left out.
  const DomainBedSplit split = domainbed_split(15, 11, 3);
  const Dataset& sketch = *run.training.train.domains[2].data;
  const DataSource whole = open_data(Spec::parse(
      fmt::format("domainbed:path=\"{}\",env=sketch,split=all", (folder / "set").string())));
  ASSERT_EQ(sketch.size(), 12);
  for (std::int64_t i = 0; i < sketch.size(); ++i) {
    EXPECT_EQ(sketch.item_name(i),
              whole.domains[0].data->item_name(split.in[static_cast<std::size_t>(i)]));
  }
  EXPECT_EQ(run.training.evaluation->domains[2].data->size(), 3);
  EXPECT_EQ(run.plan.output.weights, (folder / "set").string() + "_env2_trial11.safetensors");
  EXPECT_EQ(run.plan.train.seed, 11);
  EXPECT_EQ(run.trainer->settings().at("data"),
            "domainbed:env=\"\",leave_out=2,split=in,trial=11,holdout=0.2");
}

TEST(DomainBedTraining, EvaluatesAfterTheStepsThatDomainBedCounts) {
  const TemporaryFolder folder;
  test::write_domainbed_tree(folder / "set", 5);
  MiniatureRun run(folder / "set", 9);
  EXPECT_EQ(run.trainer->steps_total(), 9);
  std::vector<std::int64_t> due;
  EXPECT_FALSE(run.trainer->evaluation_due());
  while (run.trainer->step()) {
    if (run.trainer->evaluation_due()) due.push_back(run.trainer->steps_done() - 1);
  }
  // Numbered from zero: 0, 3, 6 and the last, as 0, 300, ..., 4800, 5000 of 5001.
  EXPECT_EQ(due, (std::vector<std::int64_t>{0, 3, 6, 8}));
}

TEST(DomainBedTraining, LearnsAllItsDomains) {
  const TemporaryFolder folder;
  test::write_domainbed_tree(folder / "set", 10);
  MiniatureRun run(folder / "set", 40);
  while (run.trainer->step()) {
  }
  EXPECT_TRUE(std::isfinite(run.trainer->read_meter().loss));
  const Evaluation result =
      evaluate(*run.training.model, evaluation_stream(*run.training.evaluation), 1);
  ASSERT_EQ(result.parts.size(), 3U);
  EXPECT_EQ(result.parts[0].domain, "art");
  EXPECT_EQ(result.parts[2].images, 6);
  EXPECT_EQ(result.images(), 18);
  EXPECT_GT(result.mean_accuracy(), 0.8);
}

}  // namespace
}  // namespace gala
