#include "gala/device/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <fstream>
#include <string>

namespace gala {
namespace {

/// A line such as "VmHWM:   123456 kB" of what Linux tells of this process.
std::int64_t kilobytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ':')) return std::stoll(line.substr(name.size() + 1));
  }
  return 0;
}

/// Null before the device was used for the first time.
c10::DeviceAllocator* allocator_of(c10::Device device) {
  c10::DeviceAllocator* allocator = at::getDeviceAllocator(device.type());
  return allocator->initialized() ? allocator : nullptr;
}

c10::DeviceIndex index_of(c10::Device device) {
  return device.has_index() ? device.index() : c10::DeviceIndex{0};
}

}  // namespace

MemoryUse memory_use(c10::Device device) {
  if (device.is_cpu()) return {kilobytes("VmRSS") * 1024, kilobytes("VmHWM") * 1024};
  if (!device.is_cuda()) return {};
  c10::DeviceAllocator* allocator = allocator_of(device);
  if (!allocator) return {};
  const auto bytes =
      allocator->getDeviceStats(index_of(device))
          .allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  return {bytes.current, bytes.peak};
}

void forget_peak(c10::Device device) {
  if (!device.is_cuda()) return;
  if (c10::DeviceAllocator* allocator = allocator_of(device)) {
    allocator->resetPeakStats(index_of(device));
  }
}

}  // namespace gala
