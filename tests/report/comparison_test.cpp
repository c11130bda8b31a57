// Two rows of a store beside each other, in pairs.
#include <gtest/gtest.h>

#include <algorithm>

#include "gala/base/error.h"
#include "gala/report/tables.h"
#include "tests/report/made_up.h"

namespace gala::test {
namespace {

/// A run over three domains of a stream, with so many of 1,000 right in each.
Record stream_run(const std::string& row, const std::string& stream, std::int64_t seed,
                  const std::vector<std::int64_t>& correct, const std::string& loss = "shot") {
  Record record = made_up({.plan = "mine",
                           .row = row,
                           .loss = loss,
                           .environment = "",
                           // Places of one plan must differ in something.
                           .trial = 10 * static_cast<std::int64_t>(stream.size()) + seed,
                           .dataset = "CIFAR-10-C",
                           .backbone = "WRN-16-2",
                           .benchmark = "continual"},
                          0);
  record.spec.stream = stream;
  record.spec.seed = seed;
  record.domains.clear();
  for (std::size_t i = 0; i < correct.size(); ++i) {
    record.domains.push_back({"domain " + std::to_string(i), 1000, correct[i]});
  }
  record.key = run_key(record.spec, row + loss);
  return record;
}

Table compare(const std::vector<Record>& records, const std::string& a, const std::string& b) {
  return comparison_table(records, a, b, SelectionRule::kPerLoss, "");
}

TEST(Comparison, PairsDomainsAndOrdersAndAveragesSeeds) {
  const std::vector<Record> records = {
      stream_run("A", "first", 0, {900, 800, 700}), stream_run("A", "first", 1, {880, 800, 720}),
      stream_run("A", "second", 0, {900, 900, 900}), stream_run("B", "first", 0, {880, 790, 700}),
      stream_run("B", "second", 0, {870, 900, 890}),
      // Nothing to be paired with.
      stream_run("A", "another", 0, {100, 100, 100})};
  const Table table = compare(records, "A", "B");
  ASSERT_EQ(table.rows.size(), 1U);
  const std::vector<Cell>& cells = table.rows[0].cells;
  // Errors by domain: A 11, 20, 29, 10, 10, 10; B 12, 21, 30, 13, 10, 11.
  EXPECT_NEAR(cells[0].value, 15, 1e-9);
  EXPECT_NEAR(cells[1].value, 97.0 / 6, 1e-9);
  EXPECT_NEAR(cells[2].value, -7.0 / 6, 1e-9);
  EXPECT_LT(cells[3].value, cells[2].value);
  EXPECT_GT(cells[4].value, cells[2].value);
  // Of the 64 changes of sign four leave a sum of -7 or 7: the pair without a difference counts twice.
  EXPECT_NEAR(cells[5].value, 4.0 / 64, 1e-9);
  EXPECT_EQ(cells[6].value, 6);
  const Table turned = compare(records, "B", "A");
  EXPECT_NEAR(turned.rows[0].cells[2].value, 7.0 / 6, 1e-9);
}

TEST(Comparison, WhatDoesNotAdaptStandsBesideEveryLoss) {
  const std::vector<Record> records = {
      stream_run("Source", "first", 0, {500, 500, 500}, ""),
      stream_run("A", "first", 0, {600, 600, 700}),
      stream_run("A", "first", 0, {600, 600, 600}, "pseudo_label")};
  const Table table = compare(records, "A", "Source");
  ASSERT_EQ(table.rows.size(), 2U);
  for (const Row& row : table.rows) {
    EXPECT_NEAR(row.cells[2].value, row.loss == "SHOT" ? -40.0 / 3 : -10, 1e-9);
  }
}

TEST(Comparison, SaysWhatElseDiffers) {
  std::vector<Record> records = {stream_run("A", "first", 0, {600, 600}),
                                 stream_run("B", "first", 0, {500, 500})};
  EXPECT_TRUE(compare(records, "A", "B").notes.empty());
  records[1].spec.precision = "bf16";
  records[1].provenance = {{"commit", "abcdef01234"}};
  EXPECT_EQ(
      compare(records, "A", "B").notes,
      (std::vector<std::string>{"Runs of different builds are compared: abc and abcdef0.",
                                "Runs of different precisions are compared: bf16 and float32."}));
}

TEST(Crossing, HasGroupsAcross) {
  std::vector<Record> records;
  for (const char* group : {"One", "Two"}) {
    for (const auto& [row, loss] :
         {std::pair{"A", "shot"}, {"B", "entropy"}, {"C", "pseudo_label"}, {"Source", ""}}) {
      Record record =
          stream_run(row, "first", 0, {*group == 'O' ? 500 : 600, *row == 'B' ? 900 : 800}, loss);
      record.labels.group = group;
      record.key = run_key(record.spec, std::string(row) + group);
      records.push_back(record);
    }
  }
  const auto tables = make_tables(records);
  const auto found = std::find_if(tables.begin(), tables.end(), [](const TableSet& set) {
    return set.id == "plan-mine-crossing";
  });
  ASSERT_NE(found, tables.end());
  const Table& table = found->variants.front();
  ASSERT_EQ(table.columns.size(), 2U);
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.heads, std::vector<std::string>{"Method"});
  EXPECT_NEAR(table.rows[1].cells[0].value, 30, 1e-9);
  EXPECT_NEAR(table.rows[1].cells[1].value, 25, 1e-9);
  EXPECT_TRUE(table.rows[1].cells[0].best);
  EXPECT_FALSE(table.rows[0].cells[0].best);
}

TEST(Comparison, SaysWhatCannotBeCompared) {
  const std::vector<Record> records = {stream_run("A", "first", 0, {600, 600, 700}),
                                       stream_run("B", "second", 0, {600, 600, 700})};
  EXPECT_THROW(compare(records, "A", "C"), ConfigError);
  EXPECT_THROW(compare(records, "A", "B"), ConfigError);
}

/// What is said of a row that is not there.
std::string said_of(const std::vector<Record>& records, const std::string& row) {
  try {
    compare(records, row, "row 1");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Comparison, OfManyRowsTheNearestAreNamed) {
  std::vector<Record> records;
  for (int row = 1; row <= 12; ++row) {
    records.push_back(stream_run(fmt::format("row {}", row), "first", 0, {900}));
  }
  const std::string few = said_of(records, "rwo 7");
  EXPECT_NE(few.find("did you mean \"row 7\"?"), few.npos) << few;
  for (int row = 1; row <= 12; ++row) {
    EXPECT_NE(few.find(fmt::format("row {}", row)), few.npos) << few;
  }
  for (int layer = 100; layer < 240; ++layer) {
    records.push_back(stream_run(fmt::format("another layer, {}", layer), "first", 0, {900}));
  }
  const std::string many = said_of(records, "row 77");
  EXPECT_NE(many.find("near it: \"row 7\", "), many.npos) << many;
  EXPECT_NE(many.find("shows all 152 of them"), many.npos) << many;
  EXPECT_EQ(std::count(many.begin(), many.end(), '"'), 2 * (1 + 5)) << many;
  const std::string part = said_of(records, "Layer, 17");
  EXPECT_NE(part.find("\"another layer, 170\", \"another layer, 171\""), part.npos) << part;
  // The source model is also known as ERM, but nothing that sounds like that is near it.
  for (const char* row : {"The thermal layers alone", "All but the source's"}) {
    records.push_back(stream_run(row, "first", 0, {900}));
  }
  const std::string source = said_of(records, "Source");
  EXPECT_NE(source.find("near it: \"All but the source's\"; "), source.npos) << source;
  const std::string none = said_of(records, "");
  EXPECT_NE(none.find("no row \"\" (--format md"), none.npos) << none;
  const std::string far = said_of(records, "xyzxyzxyzxyz");
  EXPECT_NE(far.find("\"xyzxyzxyzxyz\" (--format md without --compare shows all"), far.npos) << far;
}

}  // namespace
}  // namespace gala::test
