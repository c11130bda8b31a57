#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gala {

/// Part of the arena: elements begin .. begin + size - 1.
struct Range {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

/// What a selector chooses: some of the arena's tensors, moved together or not at all.
struct Layer {
  std::string name;
  std::vector<std::size_t> tensors;  ///< indices into the arena's tensors, in arena order
  std::int64_t count = 0;            ///< parameters in all of them
};

/// Every tensor of an arena in exactly one layer, layers in forward order.
struct LayerPartition {
  std::vector<Layer> layers;

  std::size_t size() const { return layers.size(); }
  const Layer& operator[](std::size_t index) const { return layers[index]; }
};

}  // namespace gala
