// The long run of tests/adapt/endurance_test.cpp on a GPU, with passes captured.
#include "tests/adapt/endurance.h"
#include "tests/cuda/device.h"

namespace gala {
namespace {

class CudaEnduranceOf : public OnCuda, public testing::WithParamInterface<const char*> {};

TEST_P(CudaEnduranceOf, MemoryAndTimeStayFlatAndTheGuardCalm) {
  const std::int64_t batches = endurance_batches(2000);
  const Endurance found = endure(enduring(GetParam()), batches, at::kCUDA);
  EXPECT_GT(found.steps, 0);
  EXPECT_LT(found.heap_growth, 0.01);
  EXPECT_LT(found.device_growth, 0.01);
  EXPECT_GT(found.asked, 0);
  EXPECT_LT(found.error_begin, 0.1);
  if (batches < 10000) {
    EXPECT_LT(found.error_end, 0.1);
    EXPECT_EQ(found.alarms, 0) << "and nothing was wrong";
  } else {
    EXPECT_LT(found.slower, 1.1);
    // So long a run may go wrong; then alarms are right, and only then.
    EXPECT_TRUE(found.alarms == 0 || found.error_end > 0.1)
        << found.alarms << " alarms, error " << found.error_end;
  }
}

INSTANTIATE_TEST_SUITE_P(CudaEndurance, CudaEnduranceOf, testing::ValuesIn(kEnduring),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace gala
