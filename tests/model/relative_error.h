#pragma once
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gala {

/// |value - expected| / |expected|, over all numbers.
inline double relative_error(const at::Tensor& value, const at::Tensor& expected) {
  EXPECT_EQ(value.sizes(), expected.sizes());
  const at::Tensor right = expected.detach().to(at::kDouble);
  return (value.detach().to(at::kDouble) - right).norm().item<double>() /
         std::max(1e-30, right.norm().item<double>());
}

}  // namespace gala
