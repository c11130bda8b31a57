#pragma once
#include <cstdint>

namespace gala {

/// What one pass over a layer leaves behind. u is the update the layer would receive, TD its
/// displacement; both are float32, every product and every sum is double.
struct LayerSums {
  double update_sq = 0;         ///< |u|²
  double update_dot_shift = 0;  ///< u·TD
  double shift_sq = 0;          ///< |TD|²
  double gradient_sq = 0;       ///< |g|²
  double value_sq = 0;          ///< |θ|²
  std::int64_t count = 0;       ///< parameters
};

/// Columns of a table of sums in the memory of a device, a row of doubles for each layer.
constexpr int kSumColumns = 5;
constexpr int kUpdateSq = 0, kUpdateDotShift = 1, kShiftSq = 2, kGradientSq = 3, kValueSq = 4;

/// One such row; the count is the caller's.
inline LayerSums read_sums(const double* row, std::int64_t count) {
  return {row[kUpdateSq],   row[kUpdateDotShift], row[kShiftSq],
          row[kGradientSq], row[kValueSq],        count};
}

/// cos α between u and u + TD (Eq. 5 of the paper) from the sums. Exactly 1 when the layer has not
/// moved (TD = 0), 0 when it would not move (u = 0) or would return exactly to its anchor.
double cosine(const LayerSums& sums);

}  // namespace gala
