#include "gala/data/numpy_random.h"

#include <bit>
#include <utility>

namespace gala {

std::uint32_t NumpyRandomState::interval(std::uint32_t largest) {
  if (largest == 0) return 0;
  const std::uint32_t mask = ~std::uint32_t{0} >> std::countl_zero(largest);
  while (true) {
    const std::uint32_t draw = static_cast<std::uint32_t>(generator_()) & mask;
    if (draw <= largest) return draw;
  }
}

void NumpyRandomState::shuffle(std::vector<std::int64_t>& values) {
  for (std::size_t i = values.size(); i-- > 1;) {
    std::swap(values[i], values[interval(static_cast<std::uint32_t>(i))]);
  }
}

}  // namespace gala
