#include "gala/protocol/provenance.h"

#include <ATen/Context.h>
#include <torch/version.h>

#include <ctime>
#include <fstream>

#include "gala/base/error.h"
#include "gala/device/device_memory.h"
#include "gala/device/work_queue.h"

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

}  // namespace

nlohmann::json Machine::provenance() const {
  nlohmann::json facts = {{"gala", version},
                          {"commit", commit},
                          {"compiler", compiler()},
                          {"libtorch", TORCH_VERSION},
                          {"device", device.str()},
                          {"cpu", processor()},
                          {"threads", threads},
                          {"jobs", jobs},
                          {"date", utc_now()},
                          {"command", command},
                          {"deterministic", deterministic}};
  if (const std::string gpu = gpu_name(device); !gpu.empty()) facts["gpu"] = gpu;
  return facts;
}

std::int64_t peak_memory(const c10::Device& device, std::string& of) {
  of = device.is_cpu() ? "process" : "device";
  return memory_use(device).peak;
}

}  // namespace gala
