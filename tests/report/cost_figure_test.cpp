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

}  // namespace
}  // namespace gala::test
