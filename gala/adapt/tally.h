#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "gala/data/loader.h"

namespace gala {

/// A count of answers. Labels are for counting alone; nothing that adapts sees them.
struct Tally {
  std::int64_t images = 0;   ///< answered or not
  std::int64_t counted = 0;  ///< those with a known label
  std::int64_t right = 0;

  /// One image. A label below 0 is unknown, and a prediction of kNoClass never right.
  void take(std::int64_t prediction, std::int64_t label);
  Tally& operator+=(const Tally& other);
  bool operator==(const Tally&) const = default;
};

/// Of the predictions for a batch, one per image.
Tally tally_of(const Batch& batch, std::span<const std::int64_t> predictions);

/// Adds the predictions for a batch to the tallies of the domains, one per domain of the stream.
void tally_by_domain(const Batch& batch, std::span<const std::int64_t> predictions,
                     std::vector<Tally>& domains);

}  // namespace gala
