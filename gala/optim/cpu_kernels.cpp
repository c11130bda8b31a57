// Compiled apart: without errno from square roots and without fused products, see CMakeLists.txt.
#include "gala/optim/adam_rule.h"
#include "gala/optim/sgd_rule.h"

namespace gala {

#define GALA_SWEEP(RULE)                                                               \
  template void measure_chunk(const SweepView<RULE>&, const SweepChunk&, const float*, \
                              double(&)[kSumColumns]);                                 \
  template void apply_chunk(const SweepView<RULE>&, const SweepChunk&, const float*, float)

GALA_SWEEP(AdamRule);
GALA_SWEEP(SgdRule);

}  // namespace gala
