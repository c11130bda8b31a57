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

}  // namespace
}  // namespace gala::test
