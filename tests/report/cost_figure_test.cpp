#include <gtest/gtest.h>

#include "gala/report/figures.h"
#include "gala/report/tables.h"
#include "tests/report/made_up.h"

namespace gala::test {
namespace {

nlohmann::ordered_json parts_shown(const std::map<std::string, double>& parts) {
  Record record = made_up({}, 700);
  record.steps = 10;
  record.cost.parts = parts;
  const std::vector<Record> records = {record};
  const Figure figure = cost_figure(make_tables(records));
  return figure.charts.at(0).spec["encoding"]["color"]["scale"]["domain"];
}

TEST(CostFigure, APassThatWasNotTimedInPartsIsNotCalledForward) {
  EXPECT_EQ(parts_shown({{"forward", 4}, {"backward", 8}, {"measure", 1}, {"apply", 1}}),
            (nlohmann::ordered_json{"forward", "backward", "measure", "apply"}));
  EXPECT_EQ(parts_shown({{"forward", 13}, {"backward", 0}, {"measure", 0}, {"apply", 1}}),
            (nlohmann::ordered_json{"forward to measure", "apply"}));
}

TEST(CostFigure, ComparesOnlyWhatWasMadeAlike) {
  std::vector<Record> records;
  for (const auto& [row, precision, jobs] :
       {std::tuple{"a", "float32", 1}, {"b", "bf16", 1}, {"c", "bf16", 3}}) {
    Record record = made_up({.row = row}, 700);
    record.steps = 10;
    record.cost.parts = {{"forward", 4}, {"backward", 8}};
    record.spec.precision = precision;
    record.cost.peak_memory = 0;
    record.provenance["device"] = "cuda:0";
    record.provenance["jobs"] = jobs;
    records.push_back(record);
  }
  std::vector<std::string> labels;
  for (const auto& chart : cost_figure(make_tables(records)).charts) labels.push_back(chart.label);
  EXPECT_EQ(labels,
            (std::vector<std::string>{"ResNet-18, batch 32, cuda:0: time",
                                      "ResNet-18, batch 32, cuda:0, bf16: time",
                                      "ResNet-18, batch 32, cuda:0, bf16, 3 at once: time"}));
}

TEST(CostTable, SharesTheHoursOfRunsThatWentSideBySide) {
  std::vector<Record> records;
  for (const double seconds : {10.0, 20.0, 60.0, 36.0}) {
    Record record = made_up({.plan = "mine"}, static_cast<std::int64_t>(seconds));
    record.cost.total = 1000 * seconds;
    record.over_time = {{200, 300}, {100, 100}, {}};
    record.provenance = {{"gpu", "A GPU"}, {"jobs", seconds == 36 ? 1 : 3}};
    records.push_back(record);
  }
  records.push_back(made_up({.plan = "untimed"}, 5));
  records.back().cost.total = 0;
  const Table table = cost_table(records);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].heads, (std::vector<std::string>{"mine", "PACS, ResNet-18", "A GPU"}));
  EXPECT_EQ(table.rows[1].heads[2], "A GPU, 3 at once");
  const auto number = [&](std::size_t cell) { return table.rows[1].cells.at(cell).value; };
  EXPECT_EQ(number(0), 3);
  EXPECT_DOUBLE_EQ(number(1), 3 * 500 / 1e6);
  EXPECT_NEAR(number(2), 30.0 / 3600, 1e-12);
  EXPECT_EQ(number(3), 20);
  EXPECT_EQ(number(4), 60);
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_EQ(table.notes[0], "All of them: 0.02 hours.");  // 66 seconds
}

}  // namespace
}  // namespace gala::test
