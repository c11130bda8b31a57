#include "gala/layer/layer_sums.h"

#include <algorithm>
#include <cmath>

namespace gala {

double cosine(const LayerSums& sums) {
  const double a = sums.update_sq, c = sums.update_dot_shift, t = sums.shift_sq;
  if (!(a > 0)) return 0;
  if (t == 0) return 1;
  // Written as a quotient of norms this would be off by an ulp half of the time, and ties between
  // layers that have not moved would become a lottery.
  const double denominator = std::sqrt(a * std::max(0.0, a + 2 * c + t));
  return denominator > 0 ? std::clamp((a + c) / denominator, -1.0, 1.0) : 0;
}

}  // namespace gala
