#include "gala/protocol/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gala/base/error.h"
#include "tests/protocol/sample.h"

namespace gala {
namespace {

// The published errors of the source model on CIFAR-10-C.
const std::vector<double> kErrors = {72.3, 65.7, 72.9, 46.9, 54.3, 34.8, 42.0, 25.1,
                                     41.3, 26.0, 9.3,  46.7, 26.6, 58.5, 30.3};

TEST(Metrics, MeanAndDeviationAreThoseOfThePaper) {
  // numpy.mean and numpy.std(ddof=1); the paper prints 43.50 ± 18.7.
  EXPECT_NEAR(mean(kErrors), 43.513333333333335, 1e-12);
  EXPECT_NEAR(*sample_deviation(kErrors), 18.72194536086563, 1e-12);
}

TEST(Metrics, AreUndefinedForTooFewValues) {
  EXPECT_TRUE(std::isnan(mean({})));
  const std::vector<double> one = {3};
  EXPECT_FALSE(sample_deviation(one));
  EXPECT_FALSE(bootstrap_interval(one));
  EXPECT_FALSE(spearman(one, one));
}

TEST(Metrics, QuantilesAreNumpys) {
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
  const std::vector<double> one = {3}, four = {1, 2, 4, 8};
  EXPECT_EQ(quantile(one, 0.95), 3);
  EXPECT_EQ(quantile(four, 0), 1);
  EXPECT_EQ(quantile(four, 0.5), 3);
  EXPECT_NEAR(quantile(four, 0.95), 7.4, 1e-12);
  EXPECT_EQ(quantile(four, 1), 8);
}

TEST(Metrics, BootstrapIntervalAgreesWithScipy) {
  // scipy.stats.bootstrap(..., method="percentile"), 200,000 resamples.
  const auto interval = bootstrap_interval(kErrors, 0.95, 100'000);
  EXPECT_NEAR(interval->low, 34.4, 0.15);
  EXPECT_NEAR(interval->high, 52.687, 0.15);
  const auto narrow = bootstrap_interval(kErrors, 0.8, 100'000, 5);
  EXPECT_NEAR(narrow->low, 37.507, 0.15);
  EXPECT_NEAR(narrow->high, 49.533, 0.15);
}

TEST(Metrics, BootstrapIntervalDependsOnTheSeedAlone) {
  EXPECT_EQ(bootstrap_interval(kErrors)->low, bootstrap_interval(kErrors)->low);
  EXPECT_NE(bootstrap_interval(kErrors, 0.95, 1000, 1)->low,
            bootstrap_interval(kErrors, 0.95, 1000, 2)->low);
}

TEST(Metrics, SignsByChance) {
  const std::vector<double> one = {1}, clear = {1, 2, 3, 4, 5, 6, 7, 8}, none = {1, -1, 2, -2};
  EXPECT_FALSE(sign_flip_test(one));
  EXPECT_NEAR(*sign_flip_test(clear), 2.0 / 256, 1e-12);  // all as they are, or all turned
  EXPECT_NEAR(*sign_flip_test(none), 1, 1e-12);
  // Counted by hand over all 64.
  const std::vector<double> some = {0.3, -0.1, 0.8, 0.5, -0.4, 0.9};
  EXPECT_NEAR(*sign_flip_test(some), 14.0 / 64, 1e-12);
  // Many: by draws, near the exact share of a fair coin's sums.
  std::vector<double> many(40, 1.0);
  for (std::size_t i = 0; i < 14; ++i) many[i] = -1;  // 26 against 14
  EXPECT_NEAR(*sign_flip_test(many), 0.0807, 0.01);
  EXPECT_EQ(*sign_flip_test(many), *sign_flip_test(many));
  EXPECT_GT(*sign_flip_test(std::vector<double>(40, 1.0)), 0);
}

TEST(Metrics, RanksAndSpearmanAgreeWithScipy) {
  const std::vector<double> x = {3, 1, 4, 1, 5, 9, 2, 6}, y = {2, 7, 1, 8, 2, 8, 1, 8};
  EXPECT_EQ(average_ranks(x), (std::vector<double>{4, 1.5, 5, 1.5, 6, 8, 3, 7}));
  EXPECT_EQ(average_ranks(y), (std::vector<double>{3.5, 5, 1.5, 7, 3.5, 7, 1.5, 7}));
  EXPECT_NEAR(*spearman(x, y), 0.19885368120992467, 1e-14);
  const std::vector<double> constant(8, 2.0);
  EXPECT_FALSE(spearman(x, constant));
}

Record block_run(int block, std::int64_t correct, const std::string& environment = "sketch") {
  Record record = test::sample_record();
  record.spec.select = fmt::format("fixed:layers=block{}", block);
  record.spec.partition = Granularity::kBlock;
  record.labels.environment = environment;
  record.labels.row = fmt::format("Block {}", block);
  record.domains = {{environment, 100, correct}};
  return record;
}

TEST(Metrics, TellTheErrorOfEachVisit) {
  Record record = test::sample_record();
  record.domains = {{"fog", 10, 9}, {"snow", 100, 80}, {"fog", 10, 5}, {"snow", 100, 70}};
  record.spec.stream = "continual:order=\"\",reset=no";
  EXPECT_TRUE(visit_errors(record).empty()) << "a stream that comes once";
  record.spec.stream += ",visits=2";
  const std::vector<double> errors = visit_errors(record);
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_NEAR(errors[0], 0.15, 1e-12);  // of .1 and .2
  EXPECT_NEAR(errors[1], 0.4, 1e-12);   // of .5 and .3
  EXPECT_NEAR((errors[0] + errors[1]) / 2, record.error(), 1e-12);
  record.domains.pop_back();
  EXPECT_TRUE(visit_errors(record).empty()) << "the last visit is not whole";
  record.spec.stream = "continual:=";
  EXPECT_TRUE(visit_errors(record).empty()) << "no spec";
}

TEST(Metrics, TimeOfAnImageIsThatOfItsBatches) {
  Record record = test::sample_record();
  record.over_time.images = {32, 32, 32, 10, 32};
  record.cost.batch_mean = 10;
  EXPECT_NEAR(ms_per_image(record).value(), 50.0 / 138, 1e-12);
  record.cost.batch_mean = 0;
  EXPECT_FALSE(ms_per_image(record)) << "not known";
  record.cost.batch_mean = 10;
  record.over_time = {};
  EXPECT_FALSE(ms_per_image(record));
}

TEST(Metrics, CountsModulesToTheirBlocks) {
  Record record = test::sample_record();
  record.layers = {{"conv1", 1, 1, 5, 0, 0, 0},
                   {"layer1.0", 1, 1, 7, 0, 0, 0},
                   {"layer3.1", 3, 1, 2, 0, 0, 0},
                   {"fc", 0, 1, 99, 0, 0, 0}};
  EXPECT_EQ(block_choices(record), (std::vector<double>{12, 0, 2}));
}

TEST(Metrics, KnowsRunsOfOneBlock) {
  EXPECT_EQ(fixed_block(block_run(3, 1)), 3);
  Record record = block_run(3, 1);
  record.spec.partition = Granularity::kModule;
  EXPECT_FALSE(fixed_block(record));
  record.spec.partition = Granularity::kBlock;
  record.spec.select = "fixed:layers=\"block1,block2\"";
  EXPECT_FALSE(fixed_block(record));
  EXPECT_FALSE(fixed_block(test::sample_record()));
}

TEST(Metrics, TakesBestAndWorstBlockFromStoredRuns) {
  std::vector<Record> records;
  const std::int64_t correct[] = {61, 66, 60, 40};
  for (int block = 1; block <= 4; ++block) {
    records.push_back(block_run(block, correct[block - 1]));
    records.push_back(block_run(block, 100 - correct[block - 1], "cartoon"));
  }
  Record chooser = test::sample_record();
  chooser.layers.clear();
  const std::int64_t chosen[] = {12, 40, 40, 3};
  for (int block = 1; block <= 4; ++block) {
    chooser.layers.push_back({fmt::format("block{}", block), block, 1, chosen[block - 1], 0, 0, 0});
  }
  records.push_back(chooser);
  const std::vector<Placed> runs = placed_runs(records, "table1");
  const std::vector<BlockStudy> studies = study_blocks(runs);
  ASSERT_EQ(studies.size(), 2u);
  EXPECT_EQ(studies[0].shift.environment, "sketch");
  EXPECT_DOUBLE_EQ(studies[0].best->accuracy(), 0.66);
  EXPECT_DOUBLE_EQ(studies[0].worst->accuracy(), 0.40);
  EXPECT_DOUBLE_EQ(studies[1].best->accuracy(), 0.60);
  // scipy.stats.spearmanr([12, 40, 40, 3], [.61, .66, .6, .4])
  EXPECT_NEAR(*rank_correlation(chooser, studies[0]), 0.632455532033676, 1e-14);
  BlockStudy incomplete = studies[0];
  incomplete.blocks.erase(2);
  EXPECT_FALSE(rank_correlation(chooser, incomplete));
}

TEST(Metrics, AContestedPlaceBelongsToTheLaterRun) {
  std::vector<Record> records = {block_run(1, 10), block_run(1, 20)};
  records[1].places.push_back(records[1].labels);
  records[1].places[0].plan = "other";
  std::int64_t contested = 0;
  const std::vector<Placed> runs = placed_runs(records, "table1", &contested);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(contested, 1);
  EXPECT_EQ(runs[0].record, &records[1]);
  EXPECT_EQ(placed_runs(records, "other").size(), 1u);
  EXPECT_EQ(placed_runs(records, "").size(), 2u);
}

TEST(Metrics, SaysWhereWeightsAreMixed) {
  std::vector<Record> records = {block_run(1, 10), block_run(2, 20), block_run(3, 30)};
  records[0].provenance["weight_hash"] = "aa";
  records[1].provenance["weight_hash"] = "aa";
  records[2].provenance["weight_hash"] = "bb";
  const std::vector<Placed> runs = placed_runs(records, "");
  const std::vector<std::string> said = mixed_weights(runs);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0],
            "the source model of ResNet-18 PACS sketch 10 has 2 different weights in these runs");
  EXPECT_TRUE(mixed_weights(std::span(runs).first(2)).empty());
}

}  // namespace
}  // namespace gala
