#include "gala/optim/sweep.h"

#include <algorithm>

namespace gala {

std::vector<SweepChunk> make_chunks(const ArenaLayout& layout, const LayerPartition& layers,
                                    std::int64_t size) {
  std::vector<SweepChunk> chunks;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (const std::size_t t : layers[l].tensors) {
      const Range range = layout.entries[t].range;
      for (std::int64_t offset = 0; offset < range.size; offset += size) {
        chunks.push_back({static_cast<std::int32_t>(l), static_cast<std::int32_t>(t),
                          range.begin + offset, offset, std::min(size, range.size - offset)});
      }
    }
  }
  return chunks;
}

}  // namespace gala
