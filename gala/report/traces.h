#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gala/protocol/record.h"

namespace gala {

/// The cosines of a run, short enough for a page.
struct CosineSummary {
  std::vector<std::int64_t> steps;
  std::vector<double> best, second, median, worst;  ///< 1 - cos α, at least 1e-12
  std::vector<std::int64_t> edges;                  ///< steps between which `map` is a mean
  std::vector<std::vector<double>> map;             ///< [stretch][layer]: mean 1 - cos α, or NaN

  nlohmann::ordered_json to_json() const;
};

/// Sums up the distances 1 - cos α of every step. Refused steps have none; in lines and bands, steps at
/// which every cosine is 1 are left out.
CosineSummary summarise_cosines(const std::vector<std::int64_t>& steps,
                                const std::vector<std::vector<double>>& distances);

/// Reads a trace that lies beside a store. Throws FormatError when it is none.
CosineSummary read_store_trace(const std::filesystem::path& path);

/// What `gala adapt --trace` wrote, as a run: which layers moved, how far, how clear each choice
/// was, and where the lines have them, right answers and times. Layers belong to no block (-1). Path
/// and net displacement are sums over windows, each up to its last step, where both are known.
struct AdaptTrace {
  Record run;
  CosineSummary cosines;
  std::vector<double> losses, gradient_norms;  ///< by step; NaN where not finite
};

/// Throws FormatError, with the line, when the file is no trace.
AdaptTrace read_adapt_trace(const std::filesystem::path& path);

}  // namespace gala
