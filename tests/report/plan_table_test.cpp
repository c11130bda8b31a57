#include "gala/report/tables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/report/tables_case.h"

namespace gala::test {
namespace {

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

/// A norm mode is something to choose where one row was run in several, and else part of what the row is.
TEST(Tables, RowsOfAPlanWithNormModesOfTheirOwnStandTogether) {
  std::vector<Record> records = {made_up({.plan = "mine", .row = "a"}, 700),
                                 made_up({.plan = "mine", .row = "b"}, 800)};
  records[0].spec.norm = "adaptive";
  records[1].spec.norm = "batch";
  const auto apart = make_tables(records);
  ASSERT_EQ(find(apart, "plan-mine").variants.size(), 1);
  EXPECT_EQ(find(apart, "plan-mine").variants[0].rows.size(), 2);

  records.push_back(made_up({.plan = "mine", .row = "a"}, 600));
  records.back().spec.norm = "batch";
  const auto together = make_tables(records);
  ASSERT_EQ(find(together, "plan-mine").variants.size(), 2);
  const Table& batch = find(together, "plan-mine").variant("", "batch");
  EXPECT_NEAR(row_of(batch, {"PL", "a"}).cells[0].value, 60, 1e-9);
  const Table& adaptive = find(together, "plan-mine").variant("", "adaptive");
  EXPECT_NEAR(row_of(adaptive, {"PL", "a"}).cells[0].value, 70, 1e-9);
}

/// A store that is made bit by bit has the modes of a row in different trials.
TEST(Tables, APartlyMadePlanHasItsChoiceOfNormModes) {
  std::vector<Record> records = {made_up({.plan = "mine", .row = "a"}, 700),
                                 made_up({.plan = "mine", .row = "a", .trial = 1}, 600)};
  records[0].spec.norm = "adaptive";
  records[1].spec.norm = "batch";
  const auto tables = make_tables(records);
  const TableSet& set = find(tables, "plan-mine");
  ASSERT_EQ(set.variants.size(), 2);
  EXPECT_NEAR(row_of(set.variant("", "batch"), {"PL", "a"}).cells[0].value, 60, 1e-9);
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
  for (const Row& row : table.rows) EXPECT_TRUE(row.border) << "a loss is a block here";
}

/// A run with so many of 1,000 right, and so many of the source's 900 left.
Record scored(const char* group, const char* row, const char* loss, std::int64_t correct,
              std::int64_t after) {
  Record record = made_up({.plan = "mine", .row = row, .loss = loss, .group = group}, correct);
  record.source = SourceScores{false, {{"x", 1000, 900}}, {}, {{"x", 1000, after}}};
  return record;
}

/// Rows with a bold number in a column of the plan's table.
std::vector<std::string> bold(const std::vector<Record>& records, std::size_t column) {
  std::vector<std::string> names;
  const auto tables = make_tables(records);
  for (const Row& row : find(tables, "plan-mine").variants[0].rows) {
    if (row.cells[column].best) names.push_back(row.full_name() + " " + row.loss);
  }
  return names;
}

using Words = std::vector<std::string>;

TEST(PlanTable, BoldIsTheBestOfAGroupWhereALossIsPartOfAMethod) {
  const std::vector<Record> records = {scored("Mixed", "Source", "", 600, 900),
                                       scored("Mixed", "Statistics", "", 700, 880),
                                       scored("Mixed", "a", "pseudo_label", 720, 800),
                                       scored("Mixed", "b", "shot", 800, 700),
                                       scored("Sorted", "Statistics", "", 700, 880),
                                       scored("Sorted", "a", "pseudo_label", 300, 600),
                                       scored("Sorted", "b", "shot", 200, 500)};
  EXPECT_EQ(bold(records, 0), (Words{"Mixed: b SHOT", "Sorted: Statistics "}));
  EXPECT_EQ(bold(records, 1), (Words{"Mixed: a PL", "Sorted: a PL"})) << "of those that adapt";
  const auto tables = make_tables(records);
  const Table& table = find(tables, "plan-mine").variants[0];
  std::vector<bool> lines;
  for (const Row& row : table.rows) lines.push_back(row.border);
  EXPECT_EQ(lines, (std::vector<bool>{true, false, false, false, true, false, false}));
  EXPECT_NE(table.caption.find("the best of a group, doing nothing included"), std::string::npos);
}

TEST(PlanTable, BoldIsTheBestForALossWhereMethodsComeWithSeveral) {
  const std::vector<Record> records = {
      scored("", "Source", "", 600, 900),        scored("", "Statistics", "", 700, 880),
      scored("", "a", "pseudo_label", 650, 800), scored("", "b", "pseudo_label", 640, 810),
      scored("", "a", "shot", 750, 500),         scored("", "b", "shot", 800, 400)};
  // With PL nothing comes near to doing nothing; and though SHOT is better, that stands.
  EXPECT_EQ(bold(records, 0), (Words{"Statistics ", "b SHOT"}));
  EXPECT_EQ(bold(records, 1), (Words{"b PL", "a SHOT"}));
}

TEST(PlanTable, ItsCaptionSaysWhetherDoingNothingWasCompared) {
  std::vector<Record> records = {made_up({.plan = "mine", .row = "a"}, 700)};
  const auto bold = [&] {
    const std::string caption = find(make_tables(records), "plan-mine").variants[0].caption;
    return caption.substr(caption.find("Bold is "));
  };
  const std::string behind = ", and in forgetting of those that adapt.";
  EXPECT_EQ(bold(), "Bold is the best of all.") << "nothing does nothing";
  records.push_back(made_up({.plan = "mine", .row = "Source", .loss = ""}, 600));
  EXPECT_EQ(bold(), "Bold is the best of all, doing nothing included" + behind);
  records.push_back(made_up({.plan = "mine", .row = "a", .trial = 1}, 700));
  EXPECT_EQ(bold(), "Bold is the best of all, doing nothing left out for want of trials" + behind);
  for (const auto& [row, loss] : {std::pair{"Source", ""}, {"a", "pseudo_label"}}) {
    records.push_back(made_up({.plan = "mine", .row = row, .loss = loss, .dataset = "VLCS"}, 800));
  }
  EXPECT_EQ(bold(),
            "Bold is the best of all, doing nothing included where it has as many trials" + behind);
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

TEST(PlanTable, SaysWhatItsDeviationsAreOver) {
  std::vector<Record> records = {made_up({.plan = "mine", .row = "a"}, 700)};
  const auto caption = [&] { return find(make_tables(records), "plan-mine").variants[0].caption; };
  EXPECT_EQ(caption().find("±"), std::string::npos) << "there is none";
  records.push_back(made_up({.plan = "mine", .row = "a", .trial = 1}, 720));
  EXPECT_NE(caption().find("over 2 trials"), std::string::npos) << caption();
  for (const std::int64_t trial : {0, 1, 2}) {
    records.push_back(made_up({.plan = "mine", .row = "b", .trial = trial}, 700 + trial));
  }
  EXPECT_NE(caption().find("over 2 to 3 trials"), std::string::npos) << caption();
  EXPECT_EQ(caption().find("domains"), std::string::npos) << caption();
  Record stream = made_up({.plan = "mine", .row = "c"}, 700);
  stream.domains.push_back({"another", 1000, 600});
  records.push_back(stream);
  EXPECT_NE(caption().find("or of a single run over its domains"), std::string::npos) << caption();
}

TEST(PlanTable, SaysWhenItsRunsAreOfSeveralBuilds) {
  std::vector<Record> records = {made_up({.plan = "mine", .row = "a"}, 700),
                                 made_up({.plan = "mine", .row = "b"}, 800)};
  const auto told = [&] {
    const auto notes = find(make_tables(records), "plan-mine").variants[0].notes;
    const auto note = std::find_if(notes.begin(), notes.end(), [](const std::string& text) {
      return text.starts_with("Runs of several builds");
    });
    return note == notes.end() ? "" : *note;
  };
  EXPECT_EQ(told(), "");
  records[0].provenance = {{"commit", "0123456789"}, {"libtorch", "2.11.0"}};
  records[1].provenance = {{"commit", "abcdef0123"}, {"libtorch", "2.11.0"}};
  EXPECT_EQ(told(), "Runs of several builds: gala 0123456 and abcdef0; LibTorch 2.11.0.");
  records[1].provenance = {{"commit", "0123456789"}};
  EXPECT_EQ(told(), "Runs of several builds: gala 0123456; LibTorch 2.11.0 and unknown.");
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

}  // namespace
}  // namespace gala::test
