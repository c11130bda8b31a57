// Several processes that train one network, as threads: what each of them sees, and what comes out, beside a
// single process.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gala/data/loader.h"
#include "gala/train/evaluate.h"
#include "gala/train/shard.h"
#include "tests/data/support.h"
#include "tests/device/thread_processes.h"
#include "tests/train/domainbed_tree.h"
#include "tests/train/picture_plan.h"

namespace gala {
namespace {

using test::picture_plan;
using test::PlanRun;
using test::run_processes;
using test::TemporaryFolder;
using test::write_pictures;

TrainPlan domains_plan(const std::filesystem::path& folder) {
  test::write_domainbed_tree(folder / "set", 4);
  Problems problems;
  TrainPlan plan = parse_train_plan(test::domainbed_plan(folder / "set", 5), problems);
  problems.throw_if_any("plan");
  return plan;
}

std::vector<Batch> all_batches(const Curriculum& curriculum) {
  LoaderOptions options;
  options.batch_size = curriculum.batch_size;
  options.threads = 1;
  Loader loader(curriculum.stream, *curriculum.transform, options);
  std::vector<Batch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

/// Images [views, N, ...] of a batch.
at::Tensor views_of(const at::Tensor& images, std::int64_t views) {
  return images.view({views, -1, 3, images.size(2), images.size(3)});
}

void expect_shares_that_are_the_whole(const TrainPlan& plan, int size) {
  Problems problems;
  const Training training = open_training(plan, problems);
  problems.throw_if_any("plan");
  const Curriculum whole = make_curriculum(training, plan);
  const std::vector<Batch> batches = all_batches(whole);
  std::vector<std::vector<Batch>> shares(static_cast<std::size_t>(size));
  const auto errors = run_processes(size, [&](ProcessGroup& group) {
    const Curriculum share = share_of(make_curriculum(training, plan), group);
    EXPECT_EQ(share.batch_size * size, whole.batch_size);
    shares[static_cast<std::size_t>(group.rank())] = all_batches(share);
  });
  for (const std::string& error : errors) ASSERT_EQ(error, "");
  for (std::size_t b = 0; b < batches.size(); ++b) {
    std::vector<at::Tensor> images;
    std::vector<std::int64_t> labels;
    for (const auto& share : shares) {
      ASSERT_EQ(share.size(), batches.size());
      images.push_back(views_of(share[b].images, whole.views));
      const auto each = static_cast<std::ptrdiff_t>(share[b].labels.size()) / whole.views;
      labels.insert(labels.end(), share[b].labels.begin(), share[b].labels.begin() + each);
    }
    EXPECT_TRUE(at::equal(at::cat(images, 1), views_of(batches[b].images, whole.views))) << b;
    const auto each = static_cast<std::ptrdiff_t>(batches[b].labels.size()) / whole.views;
    EXPECT_EQ(labels, std::vector<std::int64_t>(batches[b].labels.begin(),
                                                batches[b].labels.begin() + each));
  }
}

TEST(Shares, TogetherAreTheWholeBatchToTheBit) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 44);
  TrainPlan plan = picture_plan(folder.path());
  for (const int size : {2, 4}) expect_shares_that_are_the_whole(plan, size);
  plan.train.batch_size = 9;  // which leaves eight of 44 out at the end of an epoch
  expect_shares_that_are_the_whole(plan, 3);
  plan.train.batch_size = 8;
  plan.data.augmentation = Augmentation::kAugMix;
  plan.train.consistency = 12;
  expect_shares_that_are_the_whole(plan, 2);
  // Four of each of three domains: two processes have parts of the second one.
  expect_shares_that_are_the_whole(domains_plan(folder.path()), 2);
}

/// What training left, in one of the processes.
struct Trained {
  std::unique_ptr<Model> model;
  std::vector<Meter> meters;  ///< after each step
};

/// Trains in so many processes. `apart`: each with the batch statistics of its own part.
Trained trained(const TrainPlan& plan, int size, bool apart = false) {
  std::vector<Trained> results(static_cast<std::size_t>(size));
  const auto train = [&](ProcessGroup* group) {
    Trained& result = results[group ? static_cast<std::size_t>(group->rank()) : 0];
    PlanRun run(plan, /*threads=*/1, group);
    if (apart) run.training.model->set_processes(nullptr);
    while (run.trainer->step()) result.meters.push_back(run.trainer->read_meter());
    run.trainer.reset();
    result.model = std::move(run.training.model);
  };
  if (size == 1) {
    train(nullptr);
    return std::move(results[0]);
  }
  for (const std::string& error : run_processes(size, [&](ProcessGroup& g) { train(&g); })) {
    EXPECT_EQ(error, "");
  }
  // Parameters and statistics of all processes have the same bits.
  for (const Trained& result : results) {
    if (apart) break;
    EXPECT_EQ(weight_hash(*result.model), weight_hash(*results[0].model));
  }
  return std::move(results[0]);
}

/// The largest of |model - expected| / |expected - first| over parameters and statistics: how far apart two
/// networks are, as a share of the way that training took.
double apart_on_the_way(const Model& model, const Model& expected, const Model& first) {
  double worst = 0;
  const auto compare = [&](const at::Tensor& one, const at::Tensor& other, const at::Tensor& from) {
    const auto distance = [&](const at::Tensor& to) {
      return (other.detach() - to.detach()).to(at::kDouble).norm().item<double>();
    };
    worst = std::max(worst, distance(one) / distance(from));
  };
  for (std::size_t i = 0; i < first.parameters().size(); ++i) {
    compare(model.parameters()[i].value, expected.parameters()[i].value,
            first.parameters()[i].value);
  }
  for (std::size_t i = 0; i < first.buffers().size(); ++i) {
    compare(model.buffers()[i].value, expected.buffers()[i].value, first.buffers()[i].value);
  }
  return worst;
}

/// Sums are rounded to 2^-24 of their size, and a relu that is turned by that adds a jump, which later steps
/// carry on: a thousandth of the way leaves room for it, with a rate at which steps do not multiply it.
constexpr double kRounding = 1e-3;

void expect_one_result(TrainPlan plan, std::initializer_list<int> sizes) {
  plan.train.optimizer = "sgd:rate=0.002,weight_decay=0.0005";
  plan.train.warmup_epochs = 0;
  const std::unique_ptr<Model> first = std::move(PlanRun(plan).training.model);
  const Trained alone = trained(plan, 1);
  for (const int size : sizes) {
    const Trained together = trained(plan, size);
    const double error = apart_on_the_way(*together.model, *alone.model, *first);
    testing::Test::RecordProperty(fmt::format("error_of_{}", size), fmt::format("{:.1e}", error));
    EXPECT_LT(error, kRounding) << size << " processes";
    ASSERT_EQ(together.meters.size(), alone.meters.size());
    for (std::size_t i = 0; i < alone.meters.size(); ++i) {
      EXPECT_NEAR(together.meters[i].loss, alone.meters[i].loss, 1e-4 * alone.meters[i].loss) << i;
    }
  }
  // It is the statistics of the whole batch that make the results one.
  const Trained apart = trained(plan, 2, /*apart=*/true);
  const double error = apart_on_the_way(*apart.model, *alone.model, *first);
  testing::Test::RecordProperty("error_without", fmt::format("{:.1e}", error));
  EXPECT_GT(error, 30 * kRounding);
}

TEST(Shares, TrainAsASingleProcessDoes) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 44);
  TrainPlan plan = picture_plan(folder.path());
  plan.train.batch_size = 12;
  expect_one_result(plan, {2, 3, 4});
}

TEST(Shares, TrainAsASingleProcessDoesOnDomains) {
  const TemporaryFolder folder;
  expect_one_result(domains_plan(folder.path()), {2, 3});
}

TEST(Shares, TrainAsASingleProcessDoesOnSeveralViews) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 44);
  TrainPlan plan = picture_plan(folder.path());
  plan.data.augmentation = Augmentation::kAugMix;
  plan.train.consistency = 12;
  expect_one_result(plan, {2});
}

TEST(Shares, GoOnFromTheStateOfRankZeroToTheSameBytes) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 44);
  const TrainPlan plan = picture_plan(folder.path());
  const std::string expected = weight_hash(*trained(plan, 2).model);
  State saved;
  auto errors = run_processes(2, [&](ProcessGroup& group) {
    PlanRun run(plan, 1, &group);
    for (int i = 0; i < 3; ++i) run.trainer->step();
    if (group.leads()) saved = run.trainer->save();
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
  errors = run_processes(2, [&](ProcessGroup& group) {
    PlanRun run(plan, 1, &group);
    run.trainer->load(from_first(group.leads() ? saved : State{}, group));
    EXPECT_EQ(run.finish(), expected);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

TEST(Shares, EvaluateAsASingleProcessDoes) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 600);  // three batches: one process has one, the other two
  PlanRun alone(picture_plan(folder.path()));
  const Stream stream = evaluation_stream(alone.training.train);
  const Evaluation expected = evaluate(*alone.training.model, stream, 1);
  EXPECT_EQ(expected.images(), 600);
  for (const int size : {2, 4}) {  // of four, one has nothing to do
    const auto errors = run_processes(size, [&](ProcessGroup& group) {
      TrainPlan plan = picture_plan(folder.path());
      plan.train.batch_size = 8;
      PlanRun run(plan, 1, &group);
      const Evaluation shared = evaluate(*run.training.model, stream, 1, &group);
      EXPECT_EQ(shared.images(), expected.images());
      EXPECT_EQ(shared.correct(), expected.correct());
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

TEST(Shares, AreRefusedWhereTheyCannotBeEqual) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 44);
  const TrainPlan plan = picture_plan(folder.path());
  Problems problems;
  const Training training = open_training(plan, problems);
  check_shares(plan, training, 4);
  EXPECT_CONTAINS(test::message_of<ConfigError>([&] { check_shares(plan, training, 3); }),
                  "8 images cannot be shared by 3 processes");
  const TrainPlan domains = domains_plan(folder.path());
  const Training of_domains = open_training(domains, problems);
  check_shares(domains, of_domains, 6);
  EXPECT_CONTAINS(test::message_of<ConfigError>([&] { check_shares(domains, of_domains, 5); }),
                  "4 images of each of 3 domains cannot be shared by 5 processes");
}

TEST(Shares, MustBeOfOneTraining) {
  const TemporaryFolder folder;
  write_pictures(folder.path(), 24);
  const auto errors = run_processes(3, [&](ProcessGroup& group) {
    TrainPlan plan = picture_plan(folder.path());
    plan.train.batch_size = 6;
    if (group.rank() == 2) plan.train.label_smoothing = 0.25;
    PlanRun run(plan, 1, &group);
    check_agreement(run.trainer->settings(), group);
  });
  for (const std::string& error : errors) {
    EXPECT_CONTAINS(error, "rank 2 has label_smoothing 0.25, rank 0 has 0.0");
  }
}

}  // namespace
}  // namespace gala
