#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace gala {

/// The shuffle of NumPy's legacy `RandomState(seed)`, bit for bit: MT19937 seeded by one number,
/// Fisher-Yates from the end, bounded draws by mask and rejection.
class NumpyRandomState {
 public:
  explicit NumpyRandomState(std::uint32_t seed) : generator_(seed) {}

  /// Uniform in 0 .. largest.
  std::uint32_t interval(std::uint32_t largest);
  void shuffle(std::vector<std::int64_t>& values);

 private:
  std::mt19937 generator_;  // fully specified by the standard
};

}  // namespace gala
