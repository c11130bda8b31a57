#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "gala/layer/layer.h"

namespace gala {

/// How the tensors of a model lie in one flat buffer of float32, in forward order.
struct ArenaLayout {
  struct Entry {
    std::string name;
    Range range;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  ///< dense: they name every element of the range once
  };
  std::vector<Entry> entries;
  std::int64_t size = 0;  ///< elements of a buffer, with the gaps between tensors

  /// Puts a tensor after those that are there.
  void add(std::string name, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides);
};

}  // namespace gala
