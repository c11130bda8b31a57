#include "gala/train/schedule.h"

#include <cmath>
#include <numbers>

namespace gala {

double Schedule::factor(std::int64_t step) const {
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (kind == ScheduleKind::kConstant) return 1;
  if (step >= total) return 0;
  const double place = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
  return 0.5 * (1 + std::cos(std::numbers::pi * place));
}

}  // namespace gala
