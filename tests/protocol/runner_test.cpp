#include "gala/protocol/runner.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "gala/data/loader.h"
#include "gala/model/weights.h"
#include "gala/protocol/metrics.h"
#include "gala/protocol/trace.h"
#include "tests/data/support.h"
#include "tests/protocol/miniature.h"
#include "tests/protocol/runner_case.h"

namespace gala {
namespace {

namespace fs = std::filesystem;
using test::kAssets;
using test::RunnerTest;
using test::TemporaryFolder;

std::int64_t total(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

TEST_F(RunnerTest, ARecordAgreesWithItself) {
  const std::vector<Record> records = made(
      continual("contrast,fog", "select = \"gala:window=4\"\ntrace = true\nloss = \"shot\"\n"));
  ASSERT_EQ(records.size(), 1u);
  const Record& record = records[0];
  EXPECT_EQ(record.steps, 6);
  EXPECT_EQ(record.over_time.images, (std::vector<std::int64_t>{20, 20, 20, 20, 20, 20}));
  const std::vector<std::pair<std::int64_t, std::string>> borders = {{0, "contrast"}, {3, "fog"}};
  EXPECT_EQ(record.over_time.borders, borders);
  ASSERT_EQ(record.domains.size(), 2u);
  EXPECT_EQ(record.domains[0].name, "contrast");
  EXPECT_EQ(record.domains[0].images, 60);
  EXPECT_EQ(record.domains[0].correct + record.domains[1].correct, total(record.over_time.correct));
  std::int64_t steps = 0, chosen = 0, single = 0;
  for (const auto& [choice, length] : record.choices) {
    steps += length;
    single += choice >= 0 ? length : 0;
  }
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(record.choices.front().first, Record::kSeveral) << "a window opens with all layers";
  double moved = 0;
  for (const LayerUse& layer : record.layers) {
    chosen += layer.chosen;
    moved += layer.path;
    EXPECT_LE(layer.net, layer.path * (1 + 1e-4) + 1e-7) << layer.name;
    EXPECT_GT(layer.parameters, 0);
    // Two of the steps open a window, by a hundredth of the update.
    EXPECT_NEAR(layer.weight, static_cast<double>(layer.chosen) + 0.02, 1e-12) << layer.name;
  }
  EXPECT_EQ(chosen, single);
  EXPECT_GT(moved, 0);
  EXPECT_EQ(record.gap.steps, 4) << "two of six steps open a window";
  EXPECT_EQ(record.layers.back().block, 3);
  EXPECT_EQ(record.spec.head, HeadRule::kFreeze) << "as SHOT has it";
  EXPECT_EQ(record.spec.norm, "batch");
  EXPECT_EQ(record.labels.loss, "shot");
  EXPECT_EQ(record.labels.backbone, "WRN-16-2");
  EXPECT_GT(record.cost.total, 0);
  EXPECT_GT(record.cost.peak_memory, 1'000'000);
  EXPECT_EQ(record.cost.memory_of, "process");
  EXPECT_EQ(record.provenance.at("weights").get<std::string>(), "wrn16_2_cifar10.safetensors");

  std::ifstream file(folder_ / "store" / record.trace, std::ios::binary);
  const std::string packed(std::istreambuf_iterator<char>(file), {});
  EXPECT_LE(packed.size(), Trace::kLargest);
  std::istringstream lines(gunzip(packed));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line).at("layers").size(), record.layers.size());
  int count = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(nlohmann::json::parse(line).at("distance").size(), record.layers.size());
    ++count;
  }
  EXPECT_EQ(count, 6);
}

TEST_F(RunnerTest, AStreamThatRecursIsScoredVisitByVisit) {
  const std::vector<Record> records = made(
      continual("contrast,fog",
                "select = \"gala:window=4\"\nstream = \"continual:samples=shuffled,visits=3\"\n"));
  ASSERT_EQ(records.size(), 1u);
  const Record& record = records[0];
  ASSERT_EQ(record.domains.size(), 6u);
  EXPECT_EQ(record.domains[4].name, "contrast") << "the domain, whichever visit it is";
  ASSERT_EQ(record.over_time.borders.size(), 6u);
  EXPECT_EQ(record.over_time.borders[4].second, "contrast (visit 3)");
  EXPECT_EQ(record.steps, 18);
  // From the batches: two domains of three batches a visit.
  const std::vector<double> errors = visit_errors(record);
  ASSERT_EQ(errors.size(), 3u);
  for (std::size_t visit = 0; visit < errors.size(); ++visit) {
    const auto begin = static_cast<std::size_t>(record.over_time.borders[2 * visit].first);
    EXPECT_EQ(begin, 6 * visit);
    double correct = 0, images = 0;
    for (std::size_t batch = begin; batch < begin + 6; ++batch) {
      correct += static_cast<double>(record.over_time.correct[batch]);
      images += static_cast<double>(record.over_time.images[batch]);
    }
    EXPECT_NEAR(errors[visit], 1 - correct / images, 1e-12);
  }
  EXPECT_GT(ms_per_image(record).value(), 0);
}

TEST_F(RunnerTest, TheCleanTestSetCanBeAdaptedTo) {
  const std::vector<Record> records =
      made(continual("none", "select = \"none\"\nnorm = \"source\"\n"));
  ASSERT_EQ(records.size(), 1u);
  const Record& record = records[0];
  ASSERT_EQ(record.domains.size(), 1u);
  EXPECT_EQ(record.domains[0].name, "clean");
  EXPECT_EQ(record.labels.dataset, "CIFAR-10");
  EXPECT_EQ(record.domains, record.source->before) << "the same images, the same network";
}

TEST_F(RunnerTest, TheSourceModelForgetsNothingAndScoresAsItDoesAlone) {
  const std::vector<Record> records =
      made(continual("contrast", "norm = \"source\"\nselect = \"none\"\n"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_DOUBLE_EQ(*records[0].forgetting(), 0);
  EXPECT_FALSE(records[0].generalisation());
  EXPECT_TRUE(records[0].source->before_in_norm.empty());
  // The network on its own, one image at a time.
  const TestBed bed =
      make_protocol(Spec::parse(fmt::format("continual:generate=yes,images=60,corruption=contrast,"
                                            "path={}/cifar10_test_2000.png",
                                            kAssets)))
          ->open();
  const std::string weights = kAssets + "/wrn16_2_cifar10.safetensors";
  const auto model =
      make_model(Spec::parse(read_weights(weights).metadata.at("model").get<std::string>()));
  load_weights(*model, weights);
  const Stream stream = make_stream(Spec::parse("continual"), bed.target, 0);
  LoaderOptions options;
  options.batch_size = 1;
  Loader loader(stream, model->preprocessing(), options);
  std::int64_t correct = 0;
  const c10::InferenceMode no_grad;
  while (const auto batch = loader.next()) {
    correct +=
        model->forward(batch->images).logits.argmax(1).item<std::int64_t>() == batch->labels[0];
  }
  EXPECT_EQ(records[0].domains[0].correct, correct);
  EXPECT_GT(correct, 10);
}

TEST_F(RunnerTest, ARestartAtABorderMakesTheNextDomainLikeTheFirst) {
  const std::string method = "select = \"all\"\noptimizer = \"adam:rate=0.01\"\n";
  const Record alone = made(continual("fog", method)).back();
  const Record restarted =
      made(continual("contrast,fog", method + "restart_at_borders = true\n")).back();
  const Record carried = made(continual("contrast,fog", method)).back();
  EXPECT_EQ(restarted.domains[1], alone.domains[0]);
  EXPECT_TRUE(restarted.spec.restart_at_borders);
  EXPECT_EQ(std::vector<std::int64_t>(restarted.over_time.correct.begin() + 3,
                                      restarted.over_time.correct.end()),
            alone.over_time.correct);
  EXPECT_NE(restarted.over_time.correct, carried.over_time.correct);
}

TEST_F(RunnerTest, OtherStreamsAreScoredByDomain) {
  const Record mixed =
      made(continual("contrast,fog", "stream = \"mixed\"\nselect = \"none\"\n")).back();
  ASSERT_EQ(mixed.domains.size(), 2u);
  EXPECT_EQ(mixed.domains[0].name, "contrast");
  EXPECT_EQ(mixed.domains[0].images, 60);
  EXPECT_EQ(mixed.domains[1].images, 60);
  const Record correlated =
      made(continual("contrast,fog", "stream = \"correlated:by=dirichlet\"\nselect = \"none\"\n"))
          .back();
  EXPECT_EQ(correlated.domains.size(), 2u);
  const std::string gradual = fmt::format(
      "protocol = 'continual:generate=yes,images=4,severity=all,path={}/cifar10_test_2000.png,"
      "corruption=\"contrast,fog\"'\nweights = \"{}/wrn16_2_cifar10.safetensors\"\n"
      "stream = \"gradual\"\nselect = \"none\"\n",
      kAssets, kAssets);
  const Record swelling = made(gradual).back();
  ASSERT_EQ(swelling.domains.size(), 14u) << "5,4,3,2,1 and 1,2,3,4,5,4,3,2,1";
  EXPECT_EQ(swelling.domains[0].name, "contrast_5");
  EXPECT_EQ(swelling.domains[9].name, "fog_5");
  EXPECT_EQ(swelling.over_time.borders.size(), 14u);
}

TEST_F(RunnerTest, DomainBedRunsHaveAllMetrics) {
  for (const auto& [set, environments] : test::domainbed_sets()) {
    test::write_miniature(folder_ / set, environments);
  }
  const std::vector<Record> records = made(
      "protocol = \"domainbed:path={dataset},env={env}\"\n"
      "model = \"wide_resnet:depth=10,width=1\"\nbatch_size = 4\noptimizer = \"adam:rate=0.01\"",
      "[axes]\ndataset = [\"PACS\", \"VLCS\", \"TerraIncognita\", \"OfficeHome\"]\nenv = [0, 3]\n"
      "[[row]]\nname = \"All layers\"\nselect = \"all\"\nloss = \"shot\"\n");
  ASSERT_EQ(records.size(), 8u);
  for (const Record& record : records) {
    EXPECT_EQ(record.domains.size(), 1u);
    EXPECT_EQ(record.domains[0].images, 12);
    EXPECT_EQ(record.held_out->images, 3);
    EXPECT_EQ(record.source->before.size(), 3u);
    EXPECT_EQ(record.source->after[2].images, 3);
    EXPECT_EQ(record.validation.size(), 3u);
    EXPECT_EQ(record.validation[0].images, 3);
    EXPECT_TRUE(record.forgetting() && record.generalisation() && record.validation_accuracy());
    EXPECT_EQ(record.steps, 3) << "adapting to the hold-outs is not counted";
    EXPECT_NE(record.spec.model.find("classes=3"), std::string::npos);
    EXPECT_EQ(record.spec.norm, "source");
  }
  EXPECT_EQ(records[7].labels.dataset, "OfficeHome");
  EXPECT_EQ(records[7].labels.environment, "Real World");
}

TEST_F(RunnerTest, HoldOutsCanBeAugmentedAsT3aHasThem) {
  test::write_miniature(folder_ / "PACS", {"art_painting", "cartoon"}, /*each=*/40);
  const std::vector<Record> records = made(
      "protocol = \"domainbed:path=PACS,env=0,validation=no,augmented={augmented}\"\n"
      "model = \"wide_resnet:depth=10,width=1\"\nbatch_size = 8\nselect = \"none\"\nseed = 3\n",
      "[axes]\naugmented = [\"no\", \"yes\"]\n[[row]]\nname = \"augmented {augmented}\"\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0].source->augmented);
  EXPECT_TRUE(records[1].source->augmented);
  EXPECT_EQ(records[0].domains, records[1].domains) << "the target is never varied";
  EXPECT_NE(records[0].key, records[1].key);
  for (const Record& record : records) {
    EXPECT_EQ(record.source->before, record.source->after) << "drawn alike before and after";
    EXPECT_TRUE(record.validation.empty());
    EXPECT_FALSE(record.validation_accuracy());
  }
}

TEST_F(RunnerTest, TinyDomainBedSharesItsRunsWithTheHeatMap) {
  test::write_miniature(folder_ / "PACS", {"art_painting", "cartoon", "photo", "sketch"});
  const std::string method =
      "model = \"wide_resnet:depth=10,width=1\"\nselect = \"fixed:layers=block2\"\n";
  const auto tiny = ready("protocol = \"tiny_domainbed:root=.,shift=pacs_sketch\"\n" + method);
  const auto whole =
      ready("protocol = \"domainbed:path=PACS,env=3\"\npartition = \"block\"\n" + method);
  EXPECT_EQ(tiny[0].key, whole[0].key);
  EXPECT_EQ(tiny[0].labels.benchmark, "tiny_domainbed");
  const std::string erm = "model = \"wide_resnet:depth=10,width=1\"\nselect = \"none\"\n";
  EXPECT_EQ(ready("protocol = \"tiny_domainbed:root=.,shift=pacs_sketch\"\n" + erm)[0].key,
            ready("protocol = \"domainbed:path=PACS,env=3\"\n" + erm)[0].key);
  EXPECT_EQ(tiny[0].spec.partition, Granularity::kBlock);
}

TEST_F(RunnerTest, ARunThatFailsIsNamedAndTheOthersAreMade) {
  test::write_miniature(folder_ / "broken", {"art_painting", "cartoon"});
  test::write_miniature(folder_ / "whole", {"photo", "sketch"});
  const auto runs_of = [&](const std::string& seeds) {
    return ready(
        "protocol = \"domainbed:path={set},env=0\"\nmodel = \"wide_resnet:depth=10,width=1\"\n"
        "batch_size = 4\nselect = \"none\"\nseed = \"{seed}\"\n"
        "group = \"{set}\"\ntrial = \"{seed}\"\n",
        "[axes]\nset = [\"broken\", \"whole\"]\nseed = [" + seeds + "]\n");
  };
  const auto few = runs_of("0, 1"), many = runs_of("0, 1, 2, 3, 4");
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "broken/cartoon")) {
    if (entry.is_regular_file()) std::ofstream(entry.path()) << "not a picture";
  }
  std::vector<std::string> ended;
  const auto made_of = [&](const std::vector<ReadyRun>& runs, const std::string& name) {
    Store store(folder_ / name, Store::Access::kWrite);
    ended.clear();
    return test::message_of<Error>([&] {
      run_all(runs_to_do(runs, store, {}), store, Machine{}, [&](const RunnerStatus& status) {
        ended.insert(ended.end(), status.ended.begin(), status.ended.end());
        EXPECT_EQ(status.runs, static_cast<std::int64_t>(ended.size()));
      });
    });
  };
  const std::string message = made_of(few, "few");
  EXPECT_CONTAINS(message, "seed=0, set=broken");
  EXPECT_CONTAINS(message, ".png");
  EXPECT_CONTAINS(message, "(2 runs failed); 2 of 4 runs were recorded");
  // After three there is something wrong with all of them.
  EXPECT_CONTAINS(made_of(many, "many"), "(3 runs failed); 2 of 10 runs were recorded");
  ASSERT_EQ(ended.size(), 5U);
  EXPECT_CONTAINS(ended.back(), "seed=2, set=broken: failed: ");
}

TEST_F(RunnerTest, WhoeverWatchesMayHaveEnough) {
  const std::vector<ReadyRun> runs =
      ready(continual("contrast", "select = \"none\"\nseed = \"{seed}\"\ntrial = \"{seed}\"\n"),
            "[axes]\nseed = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n");
  Machine machine;
  machine.jobs = 2;
  Store store(folder_ / "store", Store::Access::kWrite);
  int calls = 0;
  const auto watch = [&](const RunnerStatus&) {
    ++calls;
    throw Error("enough");
  };
  EXPECT_EQ(
      test::message_of<Error>([&] { run_all(runs_to_do(runs, store, {}), store, machine, watch); }),
      "enough");
  EXPECT_EQ(calls, 1);
  store.refresh();
  EXPECT_LT(store.records().size(), 12U) << "no further run was begun";
  run_all(runs_to_do(runs, store, {}), store, machine, [](const RunnerStatus&) {});
  store.refresh();
  EXPECT_EQ(store.records().size(), 12U);
}

TEST(Shards, ShareOutTheRunsByTheirKeys) {
  std::vector<int> counts(3, 0);
  for (std::uint64_t i = 0; i < 300; ++i) {
    RunSpec spec;
    spec.seed = static_cast<std::int64_t>(i);
    const std::string key = run_key(spec, "");
    int owners = 0;
    for (std::int64_t s = 1; s <= 3; ++s) {
      const bool mine = Shard{s, 3}.has(key);
      owners += mine;
      counts[static_cast<std::size_t>(s - 1)] += mine;
    }
    EXPECT_EQ(owners, 1);
    EXPECT_TRUE(Shard{}.has(key));
  }
  for (const int count : counts) EXPECT_GT(count, 60);
}

TEST(Shards, AreReadAsIOfN) {
  EXPECT_EQ(Shard::parse("2/8").number, 2);
  EXPECT_EQ(Shard::parse("2/8").count, 8);
  for (const char* wrong : {"", "3", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2"}) {
    EXPECT_THROW(Shard::parse(wrong), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace gala
