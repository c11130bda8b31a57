#include "gala/tensor/device_memory.h"

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

c10::CachingDeviceAllocator::Stat allocated_bytes(c10::Device device) {
  return at::getDeviceAllocator(device.type())
      ->getDeviceStats(device.index() < 0 ? c10::DeviceIndex{0} : device.index())
      .allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

}  // namespace

MemoryUse memory_use(c10::Device device) {
  if (device.is_cpu()) return {kilobytes("VmRSS") * 1024, kilobytes("VmHWM") * 1024};
  if (!device.is_cuda()) return {};
  const auto bytes = allocated_bytes(device);
  return {bytes.current, bytes.peak};
}

void forget_peak(c10::Device device) {
  if (!device.is_cuda()) return;
  at::getDeviceAllocator(device.type())
      ->resetPeakStats(device.index() < 0 ? c10::DeviceIndex{0} : device.index());
}

}  // namespace gala
