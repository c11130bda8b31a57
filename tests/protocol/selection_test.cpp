#include "gala/protocol/selection.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/protocol/sample.h"

namespace gala {
namespace {

/// A run of a grid: `right` of 100 while adapting, `validated` of 100 on the source's hold-outs.
Record run(const std::string& dataset, const std::string& environment, std::int64_t trial,
           const std::string& rate, std::int64_t right, std::int64_t validated) {
  Record record = test::sample_record();
  record.labels.dataset = dataset;
  record.labels.environment = environment;
  record.labels.trial = trial;
  record.labels.hyper = {{"rate", rate}};
  record.domains = {{environment, 100, right}};
  record.validation = {{"source", 100, validated}};
  return record;
}

// By data set, target and rate:          PACS a  PACS b  VLCS c
//   slow                                   60      62      70     mean of means (61 + 70) / 2 = 65.5
//   fast                                   80      60      55     (70 + 55) / 2 = 62.5
// Training domains prefer fast on a, slow on b and c.
std::vector<Record> grid() {
  return {run("PACS", "a", 0, "slow", 60, 90), run("PACS", "a", 0, "fast", 80, 91),
          run("PACS", "b", 0, "slow", 62, 88), run("PACS", "b", 0, "fast", 60, 80),
          run("VLCS", "c", 0, "slow", 70, 85), run("VLCS", "c", 0, "fast", 55, 84)};
}

std::vector<std::string> rates(const Selected& selected) {
  std::vector<std::string> list;
  for (const Placed& run : selected.runs) {
    list.push_back(run.labels->environment + " " + run.labels->hyper.at("rate"));
  }
  std::sort(list.begin(), list.end());
  return list;
}

Selected chosen(const std::vector<Record>& records, SelectionRule rule) {
  return select_hyper(placed_runs(records, "table1"), rule);
}

using List = std::vector<std::string>;

TEST(Selection, OneSetForEachLossAndBackbone) {
  const std::vector<Record> records = grid();
  const Selected selected = chosen(records, SelectionRule::kPerLoss);
  EXPECT_EQ(rates(selected), (List{"a slow", "b slow", "c slow"}));
  ASSERT_EQ(selected.choices.size(), 1u);
  EXPECT_DOUBLE_EQ(selected.choices[0].score, 0.655);
  EXPECT_EQ(selected.choices[0].datasets, (List{"PACS", "VLCS"}));
  EXPECT_EQ(selected.choices[0].candidates, 2u);
}

TEST(Selection, OneSetForEachDataSet) {
  const std::vector<Record> records = grid();
  const Selected selected = chosen(records, SelectionRule::kPerDataset);
  EXPECT_EQ(rates(selected), (List{"a fast", "b fast", "c slow"}));
  EXPECT_EQ(selected.choices.size(), 2u);
}

TEST(Selection, ByTrainingDomains) {
  const std::vector<Record> records = grid();
  const Selected selected = chosen(records, SelectionRule::kTrainingDomain);
  EXPECT_EQ(rates(selected), (List{"a fast", "b slow", "c slow"}));
  EXPECT_EQ(selected.choices.size(), 3u);
  EXPECT_DOUBLE_EQ(selected.choices[0].score, 0.91);
}

TEST(Selection, Oracle) {
  const std::vector<Record> records = grid();
  EXPECT_EQ(rates(chosen(records, SelectionRule::kOracle)), (List{"a fast", "b slow", "c slow"}));
}

TEST(Selection, LeavesOutSetsWithMissingRuns) {
  std::vector<Record> records = grid();
  records.erase(records.begin());  // PACS a slow
  const Selected all = chosen(records, SelectionRule::kPerLoss);
  EXPECT_EQ(rates(all), (List{"a fast", "b fast", "c fast"}));
  EXPECT_EQ(all.choices[0].missing, (List{"rate=slow (2 of 3 runs)"}));
  const Selected each = chosen(records, SelectionRule::kPerDataset);
  EXPECT_EQ(rates(each), (List{"a fast", "b fast", "c slow"}));
}

TEST(Selection, FindsNothingWhereNoSetIsComplete) {
  std::vector<Record> records = {run("PACS", "a", 0, "slow", 60, 90),
                                 run("PACS", "b", 0, "fast", 60, 90)};
  const Selected selected = chosen(records, SelectionRule::kPerLoss);
  EXPECT_TRUE(selected.runs.empty());
  EXPECT_FALSE(selected.choices[0].found);
}

TEST(Selection, TrainingDomainsNeedTheirScores) {
  std::vector<Record> records = {run("PACS", "a", 0, "slow", 60, 90)};
  records[0].validation.clear();
  EXPECT_FALSE(chosen(records, SelectionRule::kTrainingDomain).choices[0].found);
}

TEST(Selection, KeepsRowsAndTrialsApart) {
  std::vector<Record> records = {
      run("PACS", "a", 0, "slow", 60, 90), run("PACS", "a", 1, "slow", 70, 90),
      run("PACS", "a", 0, "fast", 64, 90), run("PACS", "a", 1, "fast", 64, 90)};
  records.push_back(records[0]);
  records[4].labels.row = "All layers";
  const Selected selected = chosen(records, SelectionRule::kPerDataset);
  ASSERT_EQ(selected.choices.size(), 2u);
  EXPECT_EQ(selected.runs.size(), 3u);
  EXPECT_DOUBLE_EQ(selected.choices[0].score, 0.65);
  EXPECT_EQ(format_hyper(selected.choices[0].hyper), "rate=slow");
  EXPECT_EQ(format_hyper({}), "-");
}

}  // namespace
}  // namespace gala
