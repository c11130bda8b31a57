#pragma once
#include <cstdint>

#include "gala/base/compiler.h"

// Sums of products in double, quick and always in the same order. Nothing here knows LibTorch: it is
// compiled with other flags than the rest, and by nvcc.

namespace gala {

/// Σ x² in double.
double sum_of_squares(const float* data, std::int64_t size);

namespace detail {

/// Lanes of independent sums: enough to hide the latency of an addition and to fill any vector.
constexpr int kLanes = 16;

struct Lanes {
  double sum[kLanes] = {};

  GALA_INLINE void add(const float* a, const float* b, std::int64_t size) {
    std::int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        sum[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
      }
    }
    for (int lane = 0; i < size; ++i, ++lane) {
      sum[lane] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
  }
  double total() const {
    double result = 0;
    for (const double lane : sum) result += lane;
    return result;
  }
};

}  // namespace detail
}  // namespace gala
