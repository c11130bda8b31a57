#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace gala {

enum class ScheduleKind {
  kCosine,   ///< half a cosine from the full rate down to zero
  kConstant  ///< the full rate throughout
};
constexpr std::array<std::string_view, 2> enum_names(ScheduleKind) {
  return {"cosine", "constant"};
}

/// How the learning rate goes over a training run. In the first `warmup` steps it rises in a straight
/// line and reaches the full rate at the last of them; then the kind decides.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  std::int64_t warmup = 0;  ///< steps
  std::int64_t total = 1;   ///< steps of the whole run

  /// Share of the full rate at step 0, 1, ..., total - 1:
  ///   (step + 1) / warmup                                    while warming up,
  ///   (1 + cos(pi (step - warmup) / (total - warmup))) / 2   afterwards, with `cosine`.
  double factor(std::int64_t step) const;
};

}  // namespace gala
