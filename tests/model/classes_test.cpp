#include "gala/model/classes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

namespace gala {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

at::Tensor logits() {
  return at::tensor({1.0f, 3.0f, 2.0f, kNan, 0.0f, 1.0f, 5.0f, 0.0f, kNan, kInfinite, 0.0f, 0.0f,
                     -kInfinite, 1.0f, 0.0f, 9.0f, 1.0f, 0.0f})
      .view({6, 3});
}

TEST(Classes, AreTheLargestLogitOrNone) {
  EXPECT_TRUE(
      at::equal(predicted_classes(logits()), at::tensor({1, -1, -1, -1, -1, 0}, at::kLong)));
}

TEST(Classes, AreTheSameOnTheHost) {
  EXPECT_EQ(predictions_of(logits()), (std::vector<std::int64_t>{1, -1, -1, -1, -1, 0}));
}

}  // namespace
}  // namespace gala
