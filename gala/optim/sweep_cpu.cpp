// Compiled apart: without errno from square roots and without fused products, see CMakeLists.txt.
#include "gala/optim/adam_rule.h"
#include "gala/optim/sgd_rule.h"

namespace gala {
namespace {

#if GALA_CPU_LEVELS
__attribute__((target("avx2"))) double sum_of_squares_avx2(const float* data, std::int64_t size) {
  detail::Lanes lanes;
  lanes.add(data, data, size);
  return lanes.total();
}
#endif

}  // namespace

double sum_of_squares(const float* data, std::int64_t size) {
#if GALA_CPU_LEVELS
  if (__builtin_cpu_supports("avx2")) return sum_of_squares_avx2(data, size);
#endif
  detail::Lanes lanes;
  lanes.add(data, data, size);
  return lanes.total();
}

#define GALA_SWEEP(RULE)                                                               \
  template void measure_chunk(const SweepView<RULE>&, const SweepChunk&, const float*, \
                              double(&)[kSumColumns]);                                 \
  template void apply_chunk(const SweepView<RULE>&, const SweepChunk&, const float*, float)

GALA_SWEEP(AdamRule);
GALA_SWEEP(SgdRule);

}  // namespace gala
