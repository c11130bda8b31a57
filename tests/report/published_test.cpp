#include "gala/report/published.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "gala/protocol/metrics.h"

namespace gala::test {
namespace {

// The paper's own means check the typing: each is the mean of numbers beside it.
TEST(Published, MeansOfTable1AreMeansOfItsDataSets) {
  int rows = 0;
  for (const PublishedNumber& number : published_numbers()) {
    if (number.table != "table1" || number.column != "Mean") continue;
    ++rows;
    std::vector<double> values;
    for (const char* set : {"PACS", "VLCS", "TerraIncognita", "OfficeHome"}) {
      const auto one = find_published("table1", number.backbone, number.loss, "", number.row, set);
      ASSERT_TRUE(one);
      ASSERT_TRUE(one->deviation);
      values.push_back(one->value);
    }
    EXPECT_NEAR(mean(values), number.value, 0.0101) << number.backbone << number.loss << number.row;
  }
  EXPECT_EQ(rows, 18);
}

TEST(Published, Table4IsTheMeanOfTheSupplement) {
  for (const PublishedNumber& number : published_numbers()) {
    if (number.table != "table4") continue;
    std::vector<double> values;
    for (const PublishedNumber& part : published_numbers()) {
      if (part.table.starts_with("supplement") && part.group == number.group &&
          part.row == number.row) {
        values.push_back(part.value);
      }
    }
    ASSERT_EQ(values.size(), 4U) << number.group << number.row;
    EXPECT_NEAR(mean(values), number.value, 0.06) << number.group << number.row;
  }
}

TEST(Published, Table2IsTheErrorOfTheSupplementsAccuracy) {
  for (const char* loss : {"PL", "SHOT"}) {
    for (const auto& [set, backbone] : std::map<std::string, std::string>{
             {"CIFAR-10-C", "WRN-28-10"}, {"CIFAR-100-C", "ResNeXt-29"}}) {
      const auto error = find_published("table2", backbone, loss, "", "GALA", set);
      const auto accuracy =
          find_published("supplement2", backbone, loss, "Continual TTA", "With Reset", set);
      ASSERT_TRUE(error && accuracy);
      EXPECT_NEAR(error->value, 100 - accuracy->value, 0.0101);
    }
  }
}

TEST(Published, NamesAreComparedWithoutTheirDress) {
  EXPECT_EQ(plain_name("All layers"), plain_name("all_layers"));
  EXPECT_EQ(plain_name("Batch Size = 1"), plain_name("Batch size 1"));
  EXPECT_EQ(plain_name("∞"), plain_name("never"));
  EXPECT_NE(plain_name("0.5"), plain_name("5"));
  EXPECT_EQ(plain_name("日本"), "日本");
  EXPECT_FALSE(find_published("table1", "ResNet-18", "PL", "", "Magic", "PACS"));
}

}  // namespace
}  // namespace gala::test
