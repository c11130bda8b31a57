#include "gala/report/summary.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/report/tables_case.h"

namespace gala::test {
namespace {

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
