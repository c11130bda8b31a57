#include "gala/layer/lanes.h"

namespace gala {
namespace {

GALA_INLINE double squares(const float* data, std::int64_t size) {
  detail::Lanes lanes;
  lanes.add(data, data, size);
  return lanes.total();
}

#if GALA_CPU_LEVELS
__attribute__((target("avx2"))) double squares_avx2(const float* data, std::int64_t size) {
  return squares(data, size);
}
#endif

}  // namespace

double sum_of_squares(const float* data, std::int64_t size) {
#if GALA_CPU_LEVELS
  if (__builtin_cpu_supports("avx2")) return squares_avx2(data, size);
#endif
  return squares(data, size);
}

}  // namespace gala
