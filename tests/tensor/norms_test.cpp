#include "gala/tensor/norms.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace gala {
namespace {

/// Several pieces of work and an odd rest.
constexpr std::int64_t kMany = 5 * 32768 + 13;

long double plain_squares(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous().flatten();
  long double sum = 0;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const long double x = flat.const_data_ptr<float>()[i];
    sum += x * x;
  }
  return sum;
}

class Threads : public testing::Test {
 protected:
  void TearDown() override { at::set_num_threads(before_); }
  int before_ = at::get_num_threads();
};

TEST(SquaredNorm, AgreesWithAPlainSum) {
  at::manual_seed(4);
  for (const std::int64_t size : {0L, 1L, 7L, 8L, 9L, 32767L, 32768L, 32769L, kMany}) {
    const at::Tensor tensor = at::randn({size});
    const auto expected = static_cast<double>(plain_squares(tensor));
    EXPECT_NEAR(squared_norm(tensor), expected, 1e-12 * expected) << size;
  }
}

TEST(SquaredNorm, TakesAnyDenseOrder) {
  const at::Tensor tensor = at::randn({6, 5, 3, 3});
  const auto expected = static_cast<double>(plain_squares(tensor));
  EXPECT_NEAR(squared_norm(tensor.contiguous(at::MemoryFormat::ChannelsLast)), expected,
              1e-13 * expected);
  EXPECT_NEAR(squared_norm(tensor.transpose(0, 1)), expected, 1e-13 * expected);
}

TEST_F(Threads, DoNotChangeTheBitsOfTheNorm) {
  at::manual_seed(5);
  const at::Tensor tensor = at::randn({kMany});
  at::set_num_threads(1);
  const double expected = squared_norm(tensor);
  for (const int threads : {2, 3}) {
    at::set_num_threads(threads);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(squared_norm(tensor)),
              std::bit_cast<std::uint64_t>(expected))
        << threads;
  }
}

TEST(SquaredNorm, IsNotFiniteExactlyWhenAnElementIsNot) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const at::Tensor tensor = at::full({kMany}, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(squared_norm(tensor)));
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{40000}, kMany - 1}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
      at::Tensor broken = tensor.clone();
      broken[place] = bad;
      EXPECT_FALSE(std::isfinite(squared_norm(broken))) << place << " " << bad;
    }
  }
}

TEST(SquaredNorm, SeesTheSmallestNumbers) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(squared_norm(at::full({1}, smallest)), static_cast<double>(smallest) * smallest);
}

}  // namespace
}  // namespace gala
