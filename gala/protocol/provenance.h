#pragma once
#include <c10/core/Device.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "gala/model/layout.h"

namespace gala {

/// The machine and the program a run is made with.
struct Machine {
  c10::Device device = c10::kCPU;
  int threads = 1;         ///< of each run, on the CPU
  int loader_threads = 1;  ///< of each run
  int jobs = 1;            ///< runs side by side
  Layout layout = Layout::kAuto;
  bool deterministic = false;  ///< convolutions that add in a fixed order
  std::string version;         ///< of gala
  std::string commit;
  std::string command;  ///< as it was typed

  /// What a record says of them, with the time of now.
  nlohmann::json provenance() const;
};

/// The most memory held so far, in bytes: on a GPU by its allocator, else by the process. `of` is set
/// to "device" or "process". 0 where it is not known.
std::int64_t peak_memory(const c10::Device& device, std::string& of);

}  // namespace gala
