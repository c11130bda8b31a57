#include <gtest/gtest.h>

#include "gala/report/figures.h"
#include "gala/report/tables.h"
#include "tests/report/made_up.h"

namespace gala::test {
namespace {

TEST(GainFigure, GroupsWithASourceOfTheirOwnArePanelsOfTheirOwn) {
  std::vector<Record> records;
  const auto add = [&](const std::string& group, const std::string& row, const std::string& loss,
                       std::int64_t correct) {
    records.push_back(made_up({.plan = "mine", .row = row, .loss = loss, .group = group}, correct));
  };
  for (const std::string group : {"Mixed", "Gradual"}) {
    const std::int64_t source = group == "Mixed" ? 500 : 600;
    add(group, "Source", "", source);
    for (const std::string loss : {"pseudo_label", "shot"}) {
      add(group, "All layers", loss, source - 300);
      add(group, "GALA", loss, source + 100);
    }
  }
  add("Learning rate", "1e-3", "shot", 700);
  const Figure figure = forgetting_figure(make_tables(records));
  ASSERT_EQ(figure.charts.size(), 2U);
  EXPECT_NE(figure.charts[0].label.find("Mixed"), std::string::npos);
  EXPECT_NE(figure.charts[1].label.find("Gradual"), std::string::npos);
  for (const auto& chart : figure.charts) {
    const auto& values = chart.spec.at("data").at("values");
    ASSERT_EQ(values.size(), 4U) << chart.label;
    for (const auto& value : values) {
      const bool ours = value.at("method") == "GALA";
      EXPECT_TRUE(ours || value.at("method") == "All layers") << value;
      EXPECT_NEAR(value.at("gain").get<double>(), ours ? 10 : -30, 1e-9) << value;
    }
  }
}

}  // namespace
}  // namespace gala::test
