#include "gala/model/shared_norm.h"

#include "tests/model/shared_norm_case.h"

namespace gala {
namespace {

using test::expect_the_whole_batch;
using test::NormLayer;

TEST(SharedNorm, IsTheNormOfTheWholeBatch) {
  for (const int processes : {2, 3}) {
    expect_the_whole_batch(processes, 4, 6, at::kFloat, at::MemoryFormat::Contiguous, 1e-5);
    expect_the_whole_batch(processes, 4, 6, at::kFloat, at::MemoryFormat::ChannelsLast, 1e-5);
  }
}

TEST(SharedNorm, TakesOneValueAChannelFromEachProcess) {
  expect_the_whole_batch(3, 1, 1, at::kFloat, at::MemoryFormat::Contiguous, 1e-5);
}

TEST(SharedNorm, TakesBfloat16) {
  // Maps have 8 bits, and an error of half of the last in each number; statistics are float32.
  expect_the_whole_batch(2, 4, 6, at::kBFloat16, at::MemoryFormat::Contiguous, 1e-2);
}

TEST(SharedNorm, LeavesTheStatisticsWhereTheyShallStay) {
  const NormLayer given(4, 3, at::kFloat, at::MemoryFormat::Contiguous);
  const auto errors = test::run_processes(2, [&](ProcessGroup& group) {
    at::Tensor mean = given.mean.clone(), variance = given.variance.clone();
    const at::Tensor own = given.input.narrow(0, 2 * group.rank(), 2);
    batch_norm(own, given.scale, given.shift, mean, variance, {.kind = NormKind::kTraining},
               NormLayer::kEpsilon, /*update_statistics=*/false, {}, {}, {}, &group);
    EXPECT_TRUE(at::equal(mean, given.mean));
    EXPECT_TRUE(at::equal(variance, given.variance));
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

}  // namespace
}  // namespace gala
