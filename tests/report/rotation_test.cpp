#include <gtest/gtest.h>

#include "gala/report/figures.h"
#include "tests/report/made_up.h"

namespace gala::test {
namespace {

/// A run of three layers whose windows are four steps long.
Record turning(const std::string& select,
               std::vector<std::pair<std::int64_t, std::int64_t>> choices) {
  Record record = made_up({}, 700);
  record.spec.select = select;
  record.layers = {{"a"}, {"b"}, {"c"}};
  record.choices = std::move(choices);
  record.steps = 0;
  for (const auto& [choice, times] : record.choices) record.steps += times;
  return record;
}

constexpr std::int64_t kAll = Record::kSeveral;

TEST(Rotation, IsCountedFromTheChoicesOfOlderRecords) {
  // Windows (all, 0, 1, 0) and (all, 2, 2, 2): three repeats, of six choices.
  const Record record =
      turning("gala:window=4", {{kAll, 1}, {0, 1}, {1, 1}, {0, 1}, {kAll, 1}, {2, 3}});
  const std::optional<Rotation> rotation = rotation_of(record);
  ASSERT_TRUE(rotation);
  EXPECT_EQ(rotation->choices, 6);
  EXPECT_EQ(rotation->repeats, 3);
  // Of three draws from three layers the second repeats with 1/3, the third with 1 - (2/3)^2.
  EXPECT_NEAR(rotation->by_chance, 2 * (1.0 / 3 + 5.0 / 9), 1e-12);
}

TEST(Rotation, AWindowThatARestartCutShortEndsThere) {
  Record record = turning("gala:window=4", {{kAll, 1}, {0, 1}, {kAll, 1}, {0, 1}, {1, 1}});
  record.spec.restart_at_borders = true;
  EXPECT_EQ(rotation_of(record)->repeats, 0);
  // Where the opening moves nothing, the record does not show it.
  record = turning("gala:window=4,opening_scale=0", {{Record::kNone, 1}, {0, 1}, {1, 2}});
  EXPECT_EQ(rotation_of(record)->repeats, 1);
  record.spec.restart_at_borders = true;
  EXPECT_FALSE(rotation_of(record));
}

TEST(Rotation, IsOfRunsThatChooseOneLayerByTheirCosine) {
  EXPECT_FALSE(rotation_of(turning("random", {{0, 3}})));
  EXPECT_FALSE(rotation_of(turning("gala:mode=multiple", {{kAll, 1}, {0, 3}})));
  EXPECT_FALSE(rotation_of(turning("gala:mode=", {{kAll, 1}, {0, 3}})));
}

TEST(Rotation, WhatARecordSaysItselfCounts) {
  Record record = turning("gala", {{kAll, 1}, {0, 3}});
  record.rotation = Rotation{10, 4, 2.5};
  const Record again = Record::from_json(record.to_json());
  EXPECT_EQ(again.rotation, record.rotation);
  EXPECT_EQ(rotation_of(again), record.rotation);
}

TEST(Rotation, TableSumsUpBySettings) {
  std::vector<Record> records = {turning("gala:window=4", {{kAll, 1}, {0, 1}, {1, 1}, {0, 1}}),
                                 turning("gala:window=4", {{kAll, 1}, {0, 1}, {1, 2}}),
                                 turning("gala", {{kAll, 1}, {0, 1}, {1, 1}}),
                                 turning("random", {{0, 3}})};
  const Table table = rotation_table(records);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].heads, (std::vector<std::string>{"default", "module"}));
  EXPECT_EQ(table.rows[1].heads, (std::vector<std::string>{"window=4", "module"}));
  const auto& cells = table.rows[1].cells;
  EXPECT_EQ(cells[0].value, 2);  // runs
  EXPECT_EQ(cells[1].value, 8);  // steps
  EXPECT_EQ(cells[3].value, 6);  // choices
  EXPECT_EQ(cells[4].value, 2);  // repeats
  EXPECT_NEAR(cells[5].value, 100.0 / 3, 1e-9);
  const Figure figure = rotation_figure(records);
  ASSERT_EQ(figure.charts.size(), 1U);
  EXPECT_EQ(figure.charts[0].spec.at("data").at("values").size(), 1U);  // the default alone
}

}  // namespace
}  // namespace gala::test
