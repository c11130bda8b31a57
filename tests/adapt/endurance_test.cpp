// A long run: memory and time stay flat, the arena stays the model's, the guard has nothing to say.
//
//   GALA_ENDURANCE=100000 build/tests/adapt/gala_test_adapt --gtest_filter='*Endurance*'
#include "tests/adapt/endurance.h"

namespace gala {
namespace {

constexpr std::int64_t kFew = 300;

class EnduranceOf : public testing::TestWithParam<const char*> {};

TEST_P(EnduranceOf, MemoryAndTimeStayFlatAndTheGuardCalm) {
  const std::int64_t batches = endurance_batches(kFew);
  const Endurance found = endure(enduring(GetParam()), batches);
  EXPECT_GT(found.steps, 0);
  EXPECT_LT(found.heap_growth, 0.01);
  EXPECT_EQ(found.alarms, 0);
  EXPECT_LT(found.error_begin, 0.1) << "the toy has learned its task";
  EXPECT_LT(found.error_end, 0.1) << "and has not forgotten it";
  if (batches < 10000) return;  // in a short run chance is larger
  EXPECT_LT(found.resident_growth, 0.01);
  EXPECT_LT(found.slower, 1.1);
}

INSTANTIATE_TEST_SUITE_P(Endurance, EnduranceOf, testing::ValuesIn(kEnduring),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace gala
