#pragma once
#include <span>
#include <string>
#include <vector>

#include "gala/protocol/record.h"
#include "gala/protocol/resolve.h"

namespace gala {

/// The key of a run names the training that its weights come from, not the weights: training again by the same plan and
/// seed is the same run, and gives other numbers. A sentence for each weight file that is not the one which records
/// of these runs were made with. Files that are not there are nothing to compare.
std::vector<std::string> other_weights(std::span<const ReadyRun> runs,
                                       const std::vector<Record>& records);

}  // namespace gala
