#include "gala/report/tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gala/base/error.h"
#include "gala/report/summary.h"
#include "tests/report/made_up.h"

namespace gala::test {
namespace {

const TableSet& find(const std::vector<TableSet>& tables, std::string_view id) {
  for (const TableSet& set : tables) {
    if (set.id == id) return set;
  }
  throw Error("no table " + std::string(id));
}

/// The row whose heads end so.
const Row& row_of(const Table& table, std::initializer_list<std::string_view> heads) {
  for (const Row& row : table.rows) {
    if (row.heads.size() < heads.size()) continue;
    const auto tail = row.heads.end() - static_cast<std::ptrdiff_t>(heads.size());
    if (std::equal(heads.begin(), heads.end(), tail)) return row;
  }
  throw Error("no row " + std::string(*(heads.end() - 1)));
}

const std::vector<std::string> kTargets = {"art_painting", "cartoon", "photo", "sketch"};

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
  EXPECT_NEAR(row_of(table, {"GALA"}).cells[3].value, 1,
              1e-9);  // 4, 3, 2, 1 against 80, 70, 60, 50
  EXPECT_EQ(row_of(table, {"All Blocks"}).cells[3].state, Cell::State::kNotApplicable);
  EXPECT_EQ(row_of(table, {"Random Block"}).cells[0].state, Cell::State::kNotRun);
  // before 17 of 20 right, after 13 of 20
  EXPECT_NEAR(row_of(table, {"GALA"}).cells[2].value, 20, 1e-9);
}

TEST(Tables, OtherPlansGetATableOfTheirOwn) {
  const std::vector<Record> records = {
      made_up({.plan = "mine", .row = "a", .group = "Scale"}, 700),
      made_up({.plan = "mine", .row = "b", .group = "Scale"}, 800)};
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  EXPECT_NEAR(row_of(table, {"Scale", "PL", "b"}).cells[0].value, 80, 1e-9);
  EXPECT_TRUE(row_of(table, {"Scale", "PL", "b"}).cells[0].best);
  EXPECT_FALSE(feeds("table10", "table1"));
  EXPECT_TRUE(feeds("table4_continual", "table4"));
}

TEST(Tables, APlansRowsStandInStoreOrderButNumbersBySize) {
  std::vector<Record> records;
  for (const char* rate : {"1e-4", "1e-3"}) {
    records.push_back(made_up({.plan = "mine", .row = "tuned", .hyper = {{"rate", rate}}}, 700));
  }
  for (const char* row : {"never", "20", "block 3", "5", "block 1", "other"}) {
    records.push_back(made_up({.plan = "mine", .row = row}, 800));
  }
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  std::vector<std::string> rows;
  for (const Row& row : table.rows) rows.push_back(row.method);
  EXPECT_EQ(rows,
            (std::vector<std::string>{"5", "20", "tuned", "never", "block 1", "block 3", "other"}));
  // No group, no column for it.
  EXPECT_EQ(table.heads, (std::vector<std::string>{"TTA", "Method"}));
}

TEST(Tables, AGroupOfAPlanStandsTogetherWhenItsRunsDoNot) {
  std::vector<Record> records;
  for (const auto& [group, loss] : {std::pair{"Window", "shot"},
                                    {"Tie", "pseudo_label"},
                                    {"Window", "pseudo_label"},
                                    {"Tie", "shot"}}) {
    records.push_back(made_up({.plan = "mine", .row = "a", .loss = loss, .group = group}, 700));
  }
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  std::vector<std::string> rows;
  for (const Row& row : table.rows) rows.push_back(row.heads[0] + " " + row.heads[1]);
  EXPECT_EQ(rows, (std::vector<std::string>{"Window PL", "Window SHOT", "Tie PL", "Tie SHOT"}));
  for (const Row& row : table.rows) EXPECT_TRUE(row.border);
}

TEST(Tables, SayWhenOnlyAPartOfTheDataWasUsed) {
  std::vector<Record> records = {made_up({.plan = "mine", .row = "a"}, 700)};
  records[0].spec.protocol = "continual:set=cifar10,images=400";
  const auto notes = find(make_tables(records), "plan-mine").variants[0].notes;
  const auto part = [](const std::string& note) { return note.find("images=400") != note.npos; };
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), part));
  records[0].spec.protocol = "continual:set=cifar10,images=0";
  const auto whole = find(make_tables(records), "plan-mine").variants[0].notes;
  EXPECT_FALSE(std::any_of(whole.begin(), whole.end(), [](const std::string& note) {
    return note.find("images=") != note.npos;
  }));
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

/// Three trials of the source model, all layers and GALA; a random layer and batch statistics, which do
/// best, in the last of them alone.
std::vector<Record> with_a_row_of_one_trial() {
  std::vector<Record> records;
  for (const std::int64_t trial : {10, 11, 12}) {
    for (const std::string& target : kTargets) {
      const auto add = [&](const char* row, const char* loss, std::int64_t correct) {
        records.push_back(
            made_up({.row = row, .loss = loss, .environment = target, .trial = trial}, correct));
      };
      add("ERM", "", 650);
      add("All layers", "pseudo_label", 700);
      add("GALA", "pseudo_label", 800);
      if (trial < 12) continue;
      add("Batch statistics", "", 850);
      add("Random layer", "pseudo_label", 900);
    }
  }
  return records;
}

bool has_note(const Table& table, const std::string& words) {
  return std::any_of(table.notes.begin(), table.notes.end(), [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
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

TEST(PlanTable, AMeanOverFewerTrialsSaysWhichAndDoesNotCompete) {
  std::vector<Record> records;
  for (const std::int64_t trial : {0, 1, 2}) {
    records.push_back(made_up({.plan = "mine", .row = "a", .trial = trial}, 700));
    records.push_back(made_up({.plan = "mine", .row = "b", .trial = trial}, 800));
    if (trial > 0) records.push_back(made_up({.plan = "mine", .row = "c", .trial = trial}, 900));
  }
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  const Row& best = row_of(table, {"PL", "b"});
  const Row& fewer = row_of(table, {"PL", "c"});
  EXPECT_TRUE(best.cells[0].best);
  EXPECT_FALSE(fewer.cells[0].best);
  EXPECT_EQ(fewer.cells[0].note, "trials 1 and 2 only");
  // Many are counted, not named.
  for (const std::int64_t trial : {3, 4}) {
    records.push_back(made_up({.plan = "mine", .row = "b", .trial = trial}, 800));
  }
  const auto more = make_tables(records);
  const Row& counted = row_of(find(more, "plan-mine").variants[0], {"PL", "a"});
  EXPECT_EQ(counted.cells[0].note, "3 of 5 trials");
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

TEST(Tables, SayWhatTheNumbersRestOn) {
  const auto said = [](const Record& record, const std::string& words) {
    const std::vector<Record> records = {record};
    const auto notes = find(make_tables(records), "plan-mine").variants[0].notes;
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string& note) { return note.find(words) != note.npos; });
  };
  Record record = made_up({.plan = "mine", .row = "a"}, 700);
  EXPECT_FALSE(said(record, "Precision"));
  EXPECT_FALSE(said(record, "not the published arrays"));
  record.spec.precision = "bf16";
  EXPECT_TRUE(said(record, "Precision of convolutions and products: bf16."));
  // The arrays that `gala corrupt` makes of CIFAR-10's test images.
  record.data_hash = "ab873faadd83c46e0bf7c98f2ddb13fb126c3e5a40afbf60b6d6704107140f80";
  EXPECT_TRUE(said(record, "not the published arrays"));
  // And of CIFAR-100's.
  record.data_hash = "973dc8145f320ebf184abe532bce462407acf000c98bf4e128c7a5287669527c";
  EXPECT_TRUE(said(record, "not the published arrays"));
  EXPECT_TRUE(said(record, "corruptions of " + record.labels.dataset));
  record.data_hash = "other";
  record.spec.data = "cifar10c:generate=yes";
  EXPECT_TRUE(said(record, "not the published arrays"));
}

TEST(Summary, CountsAndTimesAreReadable) {
  Record record = made_up({}, 700);
  record.cost.total = 90'000;  // a minute and a half
  std::map<std::string, std::string> facts;
  for (const auto& [name, text] : describe_records({record})) facts[name] = text;
  EXPECT_EQ(facts["Images answered"], "1,000");
  EXPECT_EQ(facts["Run time"], "2 min");
  record.domains[0].images = 12'340'000;
  record.cost.total = 5.4e6;
  for (const auto& [name, text] : describe_records({record})) facts[name] = text;
  EXPECT_EQ(facts["Images answered"], "12.34 million");
  EXPECT_EQ(facts["Run time"], "1.5 h");
}

TEST(Summary, TheBestOfALineMayBeDoingNothing) {
  std::vector<Record> records;
  const auto add = [&](const char* row, const char* loss, std::int64_t correct) {
    records.push_back(made_up({.plan = "table2",
                               .row = row,
                               .loss = loss,
                               .dataset = "CIFAR-10-C",
                               .backbone = "WRN-28-10",
                               .benchmark = "continual"},
                              correct));
  };
  add("Source", "", 500);
  add("Batch statistics", "", 800);
  add("All layers", "pseudo_label", 100);
  add("Random layer", "pseudo_label", 780);
  add("GALA", "pseudo_label", 790);
  add("All layers", "shot", 100);
  add("Random layer", "shot", 820);
  add("GALA", "shot", 810);
  const Table summary = summary_table(make_tables(records));
  const auto best = [&](const char* loss) {
    const Row& row = row_of(summary, {"CIFAR-10-C: error", loss, "fixed"});
    std::vector<std::string> names;
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      if (row.cells[c].best) names.push_back(summary.columns[c].name);
    }
    return names;
  };
  EXPECT_EQ(best("PL"), std::vector<std::string>{"Batch statistics"});
  EXPECT_EQ(best("SHOT"), std::vector<std::string>{"Random layer"});
}

TEST(Summary, TheBestOfALineIsAmongMeansOverTheSameTrials) {
  const std::vector<Record> records = with_a_row_of_one_trial();
  const auto tables = make_tables(records);
  const Table summary = summary_table(tables);
  const Row& row = row_of(summary, {"PACS, ResNet-18: accuracy", "PL", "fixed"});
  std::vector<std::string> best, noted;
  for (std::size_t c = 0; c < row.cells.size(); ++c) {
    if (row.cells[c].best) best.push_back(summary.columns[c].name);
    if (row.cells[c].note == "trial 12 only") noted.push_back(summary.columns[c].name);
  }
  EXPECT_EQ(best, std::vector<std::string>{"GALA"});
  EXPECT_EQ(noted, (std::vector<std::string>{"Batch statistics", "Random layer"}));
  EXPECT_TRUE(has_note(summary, "fewer trials"));
  const std::vector<Verdict> verdicts = make_verdicts(tables);
  const std::string& sentence = verdicts.at(1).sentence;
  EXPECT_NE(sentence.find("a random layer 90.0\u00a0% (trial 12 only)"), std::string::npos);
  EXPECT_NE(sentence.find("Batch statistics gives 85.0\u00a0% (trial 12 only)"), std::string::npos);
}

TEST(Summary, ShowsWhatComesOutWithoutTargetLabels) {
  std::vector<Record> records;
  const auto add = [&](const char* rate, std::int64_t correct, std::int64_t held) {
    records.push_back(made_up({.hyper = {{"rate", rate}}}, correct));
    records.back().validation = {{"v", 100, held}};
  };
  records.push_back(made_up({.row = "ERM", .loss = ""}, 700));
  add("1e-4", 800, 60);
  add("1e-3", 750, 90);
  const Table summary = summary_table(make_tables(records));
  const auto gala = [&](const char* settings) {
    return row_of(summary, {"PACS, ResNet-18: accuracy", "PL", settings}).cells[2].value;
  };
  EXPECT_NEAR(gala("test labels"), 80, 1e-9);
  EXPECT_NEAR(gala("no target label"), 75, 1e-9);
}

TEST(PlanTable, SaysWhatMovedParametersCostApartFromTheStatistics) {
  std::vector<Record> records = {made_up({.plan = "mine"}, 700)};
  const auto columns = [&] {
    const auto tables = make_tables(records);
    return find(tables, "plan-mine").variants[0].columns.size();
  };
  EXPECT_EQ(columns(), 2U);  // source statistics: one number says all
  records[0].source = SourceScores{false, {{"x", 100, 90}}, {{"x", 100, 84}}, {{"x", 100, 80}}};
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  ASSERT_EQ(table.columns.size(), 3U);
  EXPECT_EQ(table.columns[2].name, "Forget., same norm");
  EXPECT_NEAR(table.rows[0].cells[1].value, 10, 1e-9);
  EXPECT_NEAR(table.rows[0].cells[2].value, 4, 1e-9);
}

TEST(Summary, SaysWhetherTheOrderIsThePapers) {
  std::vector<Record> records;
  for (const std::string& target : kTargets) {
    records.push_back(made_up({.row = "ERM", .loss = "", .environment = target}, 700));
    records.push_back(made_up({.row = "All layers", .environment = target}, 600));
    records.push_back(made_up({.row = "GALA", .environment = target}, 800));
  }
  // In the paper, all layers beat the source model on PACS with PL, and GALA beats both.
  Verdict verdict = make_verdicts(make_tables(records)).at(1);
  EXPECT_EQ(verdict.benchmark, "PACS, ResNet-18");
  EXPECT_EQ(verdict.kind, Verdict::Kind::kAgrees);
  EXPECT_NE(verdict.sentence.find("80.0"), std::string::npos);
  for (Record& record : records) {
    if (record.labels.row == "GALA") record.domains[0].correct = 650;
  }
  verdict = make_verdicts(make_tables(records)).at(1);
  EXPECT_EQ(verdict.kind, Verdict::Kind::kDiffers);
  EXPECT_EQ(verdict.mark, "1 of 2 comparisons as in the paper");
  const std::vector<Record> none;
  for (const Verdict& open : make_verdicts(make_tables(none))) {
    EXPECT_EQ(open.kind, Verdict::Kind::kNotRun);
  }
}

}  // namespace
}  // namespace gala::test
