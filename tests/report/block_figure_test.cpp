#include <gtest/gtest.h>

#include "gala/report/figures.h"
#include "tests/report/made_up.h"

namespace gala {
namespace {

using test::made_up;
using test::Place;

/// The first block alone at one learning rate.
Record block_run(const std::string& plan, const std::string& environment, const std::string& rate,
                 std::int64_t correct) {
  Record record = made_up({.plan = plan,
                           .row = "Block 1",
                           .environment = environment,
                           .hyper = {{"rate", rate}},
                           .benchmark = plan == "table3" ? "tiny_domainbed" : "domainbed"},
                          correct);
  record.spec.select = "fixed:layers=block1";
  record.spec.partition = Granularity::kBlock;
  return record;
}

Record source_run(const std::string& environment) {
  Record record =
      made_up({.plan = "heatmap", .row = "ERM", .loss = "", .environment = environment}, 500);
  record.spec.select = "none";
  record.spec.norm = "source";
  return record;
}

// One choice of hyper-parameters for all shifts: 0.2 is better on average, though not on cartoon.
TEST(BlockFigure, DoesNotDependOnThePlanThatMadeARunFirst) {
  const auto gains_of = [](bool other_plan_first) {
    std::vector<Record> records = {source_run("cartoon"), source_run("sketch"),
                                   block_run("heatmap", "sketch", "0.1", 300),
                                   block_run("heatmap", "sketch", "0.2", 700)};
    for (const auto& [rate, correct] : {std::pair{"0.1", 600}, std::pair{"0.2", 510}}) {
      Record record = block_run("heatmap", "cartoon", rate, correct);
      if (other_plan_first) {
        record.places = {record.labels};
        record.labels = block_run("table3", "cartoon", rate, correct).labels;
      }
      records.push_back(record);
    }
    const Figure figure = block_figure(records);
    EXPECT_EQ(figure.charts.size(), 1U);
    return figure.charts.at(0).spec.at("data").at("values");
  };
  const auto gains = gains_of(false);
  EXPECT_EQ(gains, gains_of(true));
  std::map<std::string, double> points;
  for (const auto& value : gains) points[value.at("shift")] = value.at("gain");
  EXPECT_DOUBLE_EQ(points.at("PACS cartoon"), 1);
  EXPECT_DOUBLE_EQ(points.at("PACS sketch"), 20);
}

}  // namespace
}  // namespace gala
