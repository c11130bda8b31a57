#include "gala/optim/sweep.h"

#include <algorithm>

namespace gala {

std::vector<SweepChunk> make_chunks(const ParameterArena& arena, const LayerPartition& layers) {
  constexpr std::int64_t kChunk = 16384;
  std::vector<SweepChunk> chunks;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (const std::size_t t : layers[l].tensors) {
      const std::int64_t size = arena.entries()[t].range.size;
      for (std::int64_t offset = 0; offset < size; offset += kChunk) {
        chunks.push_back({l, t, offset, std::min(kChunk, size - offset)});
      }
    }
  }
  return chunks;
}

}  // namespace gala
