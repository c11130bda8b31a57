#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gala {

/// How fine the layers are that a selector chooses from.
enum class Granularity {
  kTensor,  ///< each parameter tensor for itself
  kModule,  ///< a convolution; a norm's scale and shift; a linear layer's weight and bias
  kBlock    ///< a block of the network; the stem joins block 1, the head is in none
};
constexpr std::array<std::string_view, 3> enum_names(Granularity) {
  return {"tensor", "module", "block"};
}

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
