#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "gala/model/preprocessing.h"

namespace gala {

/// What values pictures of floats hold.
struct FloatRange {
  float low = std::numeric_limits<float>::infinity();  ///< of those that are finite
  float high = -std::numeric_limits<float>::infinity();
  std::int64_t not_finite = 0;   ///< pictures that hold NaN or infinity
  std::string first_not_finite;  ///< the first of them

  bool empty() const { return low > high && not_finite == 0; }
  /// Adds what `name` holds.
  void include(const FloatRange& picture, const std::string& name);
};

/// Of one picture; `not_finite` is 0 or 1.
FloatRange range_of(std::span<const float> values);

/// Looks at what was read so far, and says once each thing that is wrong with it. Float arrays are
/// taken as they are, so they should lie about where pixels from 0 to 1 lie after the network's
/// normalisation; half of that width is left on either side for noise.
class FloatRangeWatch {
 public:
  explicit FloatRangeWatch(const Preprocessing& preprocessing);
  /// What was not said before; mostly nothing.
  std::vector<std::string> look(const FloatRange& range);

 private:
  double low_ = 0, high_ = 1;
  bool normalised_ = false;
  bool said_range_ = false, said_not_finite_ = false;
};

}  // namespace gala
