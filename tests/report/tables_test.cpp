#include "gala/report/tables.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/report/tables_case.h"

namespace gala::test {
namespace {

TEST(Tables, MeanOfTargetsAndDeviationOverTrials) {
  std::vector<Record> records;
  // Trial 0: 700, 720, 740, 760 of 1000; trial 1 is 20 better everywhere.
  for (std::int64_t trial = 0; trial < 2; ++trial) {
    std::int64_t correct = 700 + 20 * trial;
    for (const std::string& target : kTargets) {
      records.push_back(made_up({.environment = target, .trial = trial}, correct));
      correct += 20;
    }
  }
  const auto tables = make_tables(records);
  const Cell& cell =
      row_of(find(tables, "table1").variants[0], {"ResNet-18", "PL", "GALA"}).cells[0];
  ASSERT_EQ(cell.state, Cell::State::kValue);
  EXPECT_NEAR(cell.value, 74, 1e-9);                   // mean of 73 and 75
  EXPECT_NEAR(*cell.deviation, std::sqrt(2.0), 1e-9);  // of 73 and 75
  EXPECT_NEAR(*cell.paper, 83.56, 1e-9);
  EXPECT_NEAR(*cell.difference(), 74 - 83.56, 1e-9);
  EXPECT_EQ(cell.runs.size(), 8U);
}

TEST(Tables, AMeanThatIsNotComparableSaysSo) {
  std::vector<Record> records;
  for (const std::string& target : kTargets)
    records.push_back(made_up({.environment = target}, 800));
  const auto tables = make_tables(records);
  const Row& row = row_of(find(tables, "table1").variants[0], {"ResNet-18", "PL", "GALA"});
  EXPECT_EQ(row.cells[0].state, Cell::State::kValue);
  EXPECT_EQ(row.cells[1].state, Cell::State::kNotRun);
  EXPECT_EQ(row.cells[4].state, Cell::State::kPartial);
  EXPECT_EQ(row.cells[4].note, "PACS only");
  EXPECT_FALSE(row.cells[4].difference());
  records.pop_back();
  const auto fewer = make_tables(records);
  const Cell& cell =
      row_of(find(fewer, "table1").variants[0], {"ResNet-18", "PL", "GALA"}).cells[0];
  EXPECT_EQ(cell.state, Cell::State::kPartial);
  EXPECT_EQ(cell.note, "art_painting, cartoon and photo only");
}

TEST(Tables, AMeanOverPartsOfSetsNamesTheSets) {
  const std::vector<Record> records = {made_up({.environment = "sketch"}, 800),
                                       made_up({.environment = "SUN09", .dataset = "VLCS"}, 700)};
  const auto tables = make_tables(records);
  EXPECT_EQ(
      row_of(find(tables, "table1").variants[0], {"ResNet-18", "PL", "GALA"}).cells.back().note,
      "PACS and VLCS only; PACS: sketch only; VLCS: SUN09 only");
}

TEST(Tables, EveryCellWithoutARecordIsNotRun) {
  const std::vector<Record> none;
  const auto tables = make_tables(none);
  ASSERT_EQ(tables.size(), 6U);
  for (const TableSet& set : tables) {
    ASSERT_EQ(set.variants.size(), 1U);
    EXPECT_EQ(set.variants[0].measured(), 0);
    EXPECT_FALSE(set.variants[0].rows.empty());
    for (const Row& row : set.variants[0].rows) {
      for (const Cell& cell : row.cells) EXPECT_FALSE(cell.has_value());
    }
  }
}

TEST(Tables, ARuleChoosesAmongHyperParameters) {
  // At 1e-4 "sketch" does better, at 1e-3 "photo", and 1e-3 is better on the whole.
  std::vector<Record> records;
  const auto add = [&](const char* target, const char* rate, std::int64_t correct,
                       std::int64_t held) {
    records.push_back(made_up({.environment = target, .hyper = {{"rate", rate}}}, correct));
    records.back().validation = {{"v", 100, held}};
  };
  add("sketch", "1e-4", 700, 60);
  add("photo", "1e-4", 600, 70);
  add("sketch", "1e-3", 650, 90);
  add("photo", "1e-3", 800, 50);
  const auto tables = make_tables(records);
  const TableSet& set = find(tables, "table1");
  ASSERT_EQ(set.variants.size(), 4U);
  const auto value = [&](const char* rule) {
    return row_of(set.variant(rule, ""), {"ResNet-18", "PL", "GALA"}).cells[0].value;
  };
  EXPECT_NEAR(value("per_loss"), 72.5, 1e-9);
  EXPECT_NEAR(value("per_dataset"), 72.5, 1e-9);
  EXPECT_NEAR(value("oracle"), 75, 1e-9);             // 70 and 80
  EXPECT_NEAR(value("training_domain"), 62.5, 1e-9);  // 65 and 60
}

TEST(Tables, WhatHasOneSetOfHyperParametersNeedsNoRule) {
  std::vector<Record> records = {made_up({.row = "ERM", .loss = ""}, 700),
                                 made_up({.hyper = {{"rate", "1e-4"}}}, 800),
                                 made_up({.hyper = {{"rate", "1e-3"}}}, 600)};
  for (Record& record : records) record.validation.clear();
  const auto tables = make_tables(records);
  const Table& table = find(tables, "table1").variant("training_domain", "");
  EXPECT_NEAR(row_of(table, {"ResNet-18", "ERM", "–"}).cells[0].value, 70, 1e-9);
  const Cell& cell = row_of(table, {"ResNet-18", "PL", "GALA"}).cells[0];
  EXPECT_EQ(cell.state, Cell::State::kNotRun);
  EXPECT_EQ(cell.note, "runs are there, but the rule cannot choose among them");
}

TEST(Tables, NormModesAreVariants) {
  std::vector<Record> records;
  for (const char* norm : {"source", "batch"}) {
    for (const std::string& target : kTargets) {
      records.push_back(
          made_up({.environment = target}, std::string_view(norm) == "batch" ? 900 : 800));
      records.back().spec.norm = norm;
    }
  }
  const auto tables = make_tables(records);
  const TableSet& set = find(tables, "table1");
  ASSERT_EQ(set.variants.size(), 2U);
  const std::initializer_list<std::string_view> heads = {"ResNet-18", "PL", "GALA"};
  EXPECT_NEAR(row_of(set.variant("", "source"), heads).cells[0].value, 80, 1e-9);
  EXPECT_NEAR(row_of(set.variant("", "batch"), heads).cells[0].value, 90, 1e-9);
}

TEST(Tables, ContinualErrorsDeviateOverCorruptions) {
  Record record = made_up({.plan = "table2",
                           .loss = "shot",
                           .environment = "",
                           .dataset = "CIFAR-10-C",
                           .backbone = "WRN-28-10",
                           .benchmark = "continual"},
                          0);
  // The published errors of the source model, whose mean and deviation the paper prints.
  const double errors[] = {72.3, 65.7, 72.9, 46.9, 54.3, 34.8, 42.0, 25.1,
                           41.3, 26.0, 9.3,  46.7, 26.6, 58.5, 30.3};
  record.domains.clear();
  for (const double error : errors) {
    record.domains.push_back({"corruption" + std::to_string(record.domains.size()), 1000,
                              1000 - static_cast<std::int64_t>(std::lround(10 * error))});
  }
  const auto tables = make_tables({record});
  const Cell& cell = row_of(find(tables, "table2").variants[0], {"SHOT", "GALA"}).cells[0];
  EXPECT_EQ(cell.state, Cell::State::kValue);
  EXPECT_NEAR(cell.value, 43.51, 0.005);
  EXPECT_NEAR(*cell.deviation, 18.72, 0.005);
  record.labels.backbone = "WRN-16-2";
  const auto other = make_tables({record});
  const Cell& small = row_of(find(other, "table2").variants[0], {"SHOT", "GALA"}).cells[0];
  EXPECT_EQ(small.state, Cell::State::kPartial);
  EXPECT_EQ(small.note, "WRN-16-2");
}

TEST(Tables, BestAndWorstBlockComeFromRunsOfSingleBlocks) {
  std::vector<Record> records;
  const auto add = [&](const std::string& row, const std::string& select, std::int64_t correct) {
    records.push_back(made_up({.plan = "table3", .row = row}, correct));
    records.back().spec.select = select;
    records.back().spec.partition = Granularity::kBlock;
    records.back().layers.clear();
    for (int block = 1; block <= 4; ++block) {
      records.back().layers.push_back(
          {.name = "block" + std::to_string(block), .block = block, .chosen = 5 - block});
    }
  };
  add("Block 1", "fixed:layers=block1", 800);
  add("Block 2", "fixed:layers=block2", 700);
  add("Block 3", "fixed:layers=block3", 600);
  add("Block 4", "fixed:layers=block4", 500);
  add("GALA", "gala", 750);
  add("All Blocks", "all", 550);
  const auto tables = make_tables(records);
  const Table& table = find(tables, "table3").variants[0];
  EXPECT_NEAR(row_of(table, {"Best Block (oracle)"}).cells[0].value, 80, 1e-9);
  EXPECT_NEAR(row_of(table, {"Worst Block (oracle)"}).cells[0].value, 50, 1e-9);
  // What a cell names are labels of the records: those that the study made are gone by now.
  using Places = std::vector<const Labels*>;
  EXPECT_EQ(row_of(table, {"Best Block (oracle)"}).cells[0].places, Places{&records[0].labels});
  EXPECT_EQ(row_of(table, {"Worst Block (oracle)"}).cells[0].places, Places{&records[3].labels});
  EXPECT_NEAR(row_of(table, {"GALA"}).cells[3].value, 1,
              1e-9);  // 4, 3, 2, 1 against 80, 70, 60, 50
  EXPECT_EQ(row_of(table, {"All Blocks"}).cells[3].state, Cell::State::kNotApplicable);
  EXPECT_EQ(row_of(table, {"Random Block"}).cells[0].state, Cell::State::kNotRun);
  // before 17 of 20 right, after 13 of 20
  EXPECT_NEAR(row_of(table, {"GALA"}).cells[2].value, 20, 1e-9);
}

TEST(Tables, NothingIsBestAmongMeansOverDifferentTargets) {
  std::vector<Record> records;
  for (const std::string& target : kTargets) {
    records.push_back(made_up({.environment = target}, 800));
    records.push_back(made_up({.row = "All layers", .environment = target}, 700));
  }
  const auto best = [&](const std::string& row) {
    return row_of(find(make_tables(records), "table1").variants[0], {"ResNet-18", "PL", row})
        .cells[0]
        .best;
  };
  EXPECT_TRUE(best("GALA"));
  records.pop_back();  // all layers on three targets
  EXPECT_FALSE(best("GALA"));
  EXPECT_FALSE(best("All layers"));
}

TEST(Tables, AMeanOverFewerTrialsSaysWhichAndDoesNotCompete) {
  const std::vector<Record> records = with_a_row_of_one_trial();
  const auto tables = make_tables(records);
  const Table& table = find(tables, "table1").variants[0];
  const Row& random = row_of(table, {"ResNet-18", "PL", "Random layer"});
  EXPECT_EQ(random.cells[0].state, Cell::State::kPartial);
  EXPECT_EQ(random.cells[0].note, "trial 12 only");
  EXPECT_EQ(random.cells.back().note, "PACS only; trial 12 only");
  EXPECT_FALSE(random.cells[0].best);
  EXPECT_EQ(row_of(table, {"ResNet-18", "Batch statistics", "–"}).cells[0].note, "trial 12 only");
  const Row& gala = row_of(table, {"ResNet-18", "PL", "GALA"});
  EXPECT_EQ(gala.cells[0].state, Cell::State::kValue);
  EXPECT_TRUE(gala.cells[0].best);
  EXPECT_TRUE(has_note(table, "fewer trials"));
  // Where there is no other trial, nothing is missing and all compete.
  std::vector<Record> last = records;
  std::erase_if(last, [](const Record& record) { return record.labels.trial != 12; });
  const auto one_trial = make_tables(last);
  const Table& whole = find(one_trial, "table1").variants[0];
  const Row& competing = row_of(whole, {"ResNet-18", "PL", "Random layer"});
  EXPECT_EQ(competing.cells[0].state, Cell::State::kValue);
  EXPECT_TRUE(competing.cells[0].best);
  EXPECT_FALSE(has_note(whole, "fewer trials"));
}

TEST(Tables, TrialsStandBehindTheTargets) {
  std::vector<Record> records = with_a_row_of_one_trial();
  std::erase_if(records, [](const Record& record) {
    return record.labels.row == "Random layer" && record.labels.environment != "sketch";
  });
  const auto tables = make_tables(records);
  const Row& random =
      row_of(find(tables, "table1").variants[0], {"ResNet-18", "PL", "Random layer"});
  EXPECT_EQ(random.cells[0].note, "sketch only; trial 12 only");
}

TEST(Tables, ConditionsNameTheTargetsTheyRestOn) {
  std::vector<Record> records;
  for (const char* target : {"photo", "sketch"}) {
    records.push_back(made_up(
        {.plan = "table4_domainbed", .row = "5", .environment = target, .group = "Window size"},
        800));
  }
  const auto tables = make_tables(records);
  const Cell& cell = row_of(find(tables, "supplement1").variants[0], {"Window Size", "5"}).cells[0];
  EXPECT_EQ(cell.state, Cell::State::kPartial);
  EXPECT_EQ(cell.note, "PACS: photo and sketch only");
  // What is known of them is no matter of the table about continual streams.
  EXPECT_FALSE(find(tables, "supplement1").variants[0].norm.empty());
  EXPECT_TRUE(find(tables, "supplement2").variants[0].norm.empty());
}

}  // namespace
}  // namespace gala::test
