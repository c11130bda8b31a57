#include "gala/protocol/provenance.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <sys/resource.h>
#include <torch/version.h>

#include <ctime>
#include <fstream>

#include "gala/base/error.h"

namespace gala {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

c10::DeviceIndex index_of(const c10::Device& device) {
  return device.has_index() ? device.index() : c10::DeviceIndex{0};
}

}  // namespace

nlohmann::json Machine::provenance() const {
  return {{"gala", version},           {"commit", commit},       {"compiler", compiler()},
          {"libtorch", TORCH_VERSION}, {"device", device.str()}, {"cpu", processor()},
          {"threads", threads},        {"jobs", jobs},           {"layout", format_value(layout)},
          {"date", utc_now()},         {"command", command}};
}

std::int64_t peak_memory(const c10::Device& device, std::string& of) {
  if (device.is_cpu()) {
    of = "process";
    rusage usage{};
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * std::int64_t{1024} : 0;
  }
  of = "device";
  try {
    const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(index_of(device));
    return stats.allocated_bytes[0].peak;  // 0 is the sum over large and small blocks
  } catch (const c10::Error&) {
    return 0;  // an allocator that keeps no count
  }
}

void reset_peak_memory(const c10::Device& device) {
  if (device.is_cpu()) return;
  try {
    c10::getDeviceAllocator(device.type())->resetPeakStats(index_of(device));
  } catch (const c10::Error&) {
    return;  // then the peak is not known either
  }
}

}  // namespace gala
