#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gala/data/dataset.h"

namespace gala {

/// What one domain holds.
struct DomainSummary {
  std::string name;
  std::int64_t pictures = 0;
  std::vector<std::int64_t> class_counts;  ///< by label; empty without labels
  std::int64_t smallest_height = 0, smallest_width = 0;
  std::int64_t largest_height = 0, largest_width = 0;  ///< of those that can be read
  std::vector<std::string> unreadable;  ///< in file order, messages that begin with the file's path
};

/// Reads every picture, on `threads` threads, and counts. `progress` is told, from the calling thread,
/// how many pictures of all domains are done. Throws Interrupted after a signal.
std::vector<DomainSummary> describe_data(const DataSource& source, int threads,
                                         const std::function<void(std::int64_t)>& progress = {});

}  // namespace gala
