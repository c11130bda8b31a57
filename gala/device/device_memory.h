#pragma once
#include <c10/core/Device.h>

#include <cstdint>

namespace gala {

/// Bytes of tensors in a GPU's memory, of all adapters in this process; on the CPU, the memory of the
/// process. 0 where nobody can tell.
struct MemoryUse {
  std::int64_t current = 0;
  std::int64_t peak = 0;  ///< since the start or, on a GPU, the last `forget_peak`
};
MemoryUse memory_use(c10::Device device);
/// From now on the peak counts anew; on a GPU only.
void forget_peak(c10::Device device);

}  // namespace gala
