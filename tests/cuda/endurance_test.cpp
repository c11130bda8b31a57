// The long run of tests/adapt/endurance_test.cpp on a GPU, with passes captured.
#include "tests/adapt/endurance.h"
#include "tests/cuda/device.h"

namespace gala {
namespace {

class CudaEndurance : public OnCuda {};

TEST_F(CudaEndurance, MemoryAndTimeStayFlatAndTheGuardCalm) {
  for (const char* name : kEnduring) {
    SCOPED_TRACE(name);
    const std::int64_t batches = endurance_batches(2000);
    const Endurance found = endure(enduring(name), batches, at::kCUDA);
    EXPECT_GT(found.steps, 0);
    EXPECT_LT(found.heap_growth, 0.01);
    EXPECT_LT(found.device_growth, 0.01);
    EXPECT_EQ(found.alarms, 0);
    EXPECT_GT(found.asked, 0);
    EXPECT_LT(found.error_end, 0.1);
    EXPECT_TRUE(batches < 10000 || found.slower < 1.1) << found.slower;
  }
}

}  // namespace
}  // namespace gala
