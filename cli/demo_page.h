#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gala/report/report.h"

namespace gala {

/// What one of the demo's copies answered.
struct DemoCopy {
  std::string name = {}, label = {}, norm = {}, select = {};
  std::vector<Score> domains = {};
  std::vector<std::int64_t> images = {}, correct = {};  ///< by batch
  double batch_ms = 0;                                  ///< mean to answer a batch
  std::filesystem::path trace = {};                     ///< empty where nothing adapts
};

/// Errors in %, domain by domain and overall, and the time: the table of terminal and page alike.
Table demo_table(const std::vector<DemoCopy>& copies);

/// The page of the demo: its table, and what the traces tell. Throws ConfigError as make_page does.
std::string demo_page(const std::vector<DemoCopy>& copies, const std::string& loss,
                      const std::string& verdict);

}  // namespace gala
