#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gala/protocol/store.h"

namespace gala {

/// What came of a merge.
struct MergeCounts {
  std::int64_t runs = 0;    ///< that were added
  std::int64_t places = 0;  ///< that were added to runs
  std::int64_t known = 0;   ///< runs that were there
  std::int64_t other = 0;   ///< of those: made again with another result, which is left where it is
  std::int64_t traces = 0;  ///< files that were copied
  std::int64_t no_trace = 0;  ///< runs whose trace is not where their record says
};

/// Adds to a store what it lacks of another. A run that both have stays as it is there, whatever the other says of
/// it. Can be stopped and made again.
MergeCounts merge_stores(Store& into, const Store& from);

/// What is wrong with a store, as sentences: lines that were left out, runs that two writers made with other results,
/// records whose key is not that of what they say, traces that are gone.
std::vector<std::string> check_store(const Store& store);

}  // namespace gala
