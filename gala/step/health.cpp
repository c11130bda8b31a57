#include "gala/step/health.h"

#include <algorithm>
#include <cmath>

namespace gala {

BatchHealth look_at(const float* logits, std::int64_t images, std::int64_t classes) {
  BatchHealth health;
  health.predictions.reserve(static_cast<std::size_t>(images));
  const float* row = logits;
  for (std::int64_t n = 0; n < images; ++n, row += classes) {
    const float* best = std::max_element(row, row + classes);
    double sum = 0, weighted = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double distance = static_cast<double>(row[c]) - *best, weight = std::exp(distance);
      sum += weight;
      weighted += weight * distance;
    }
    // Not finite exactly where one of the logits is not: a distance, or 0 times one, is no number.
    const double entropy = std::log(sum) - weighted / sum;
    const bool finite = std::isfinite(entropy);
    health.predictions.push_back(finite ? best - row : kNoClass);
    health.entropy_sum += finite ? entropy : 0;
    health.not_finite += !finite;
  }
  return health;
}

}  // namespace gala
