#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gala {

/// What `gala train` was given.
struct TrainFlags {
  std::string plan;
  std::vector<std::string> settings;  ///< "name=value": parameters and keys of the plan
  bool resume = false;
  std::string out;        ///< in place of the plan's
  std::string data_path;  ///< in place of the `path` of the plan's data sets
  std::string device = "cpu";
  std::int64_t threads = 0;
  bool quiet = false;
  double wait = 600;  ///< seconds for which processes that train together wait for each other
};

/// Trains as the plan says; the exit code.
int run_training(const TrainFlags& flags);

}  // namespace gala
