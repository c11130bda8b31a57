#pragma once
#include <chrono>

namespace gala {

/// Measures wall-clock time in laps.
class Stopwatch {
 public:
  /// Milliseconds since the last lap, or since it was made.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::milli> time = now - last_;
    last_ = now;
    return time.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace gala
