#pragma once
#include <cstdint>
#include <string>

namespace gala {

struct DemoFlags {
  std::string assets;  ///< empty: beside the program or in the source tree
  std::string out = "gala-demo";
  std::string loss = "pseudo_label";
  std::int64_t images = 2000;
  bool quiet = false;
};

/// Runs the demo and prints its table. Returns the exit code: 0, or 130 when the user stopped it.
int run_demo(const DemoFlags& flags);

}  // namespace gala
