#include "gala/layer/layout.h"

#include <functional>
#include <numeric>
#include <utility>

namespace gala {
namespace {

/// Every tensor begins at a multiple of 512 bytes, counted from the arena's begin, as tensors do that
/// LibTorch allocates on a GPU: some of cuDNN's convolutions take a seventh longer with weights that
/// only begin on a cache line.
constexpr std::int64_t kAlignment = 512 / sizeof(float);

}  // namespace

void ArenaLayout::add(std::string name, std::vector<std::int64_t> sizes,
                      std::vector<std::int64_t> strides) {
  const std::int64_t count =
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  entries.push_back({std::move(name), {size, count}, std::move(sizes), std::move(strides)});
  size += (count + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace gala
