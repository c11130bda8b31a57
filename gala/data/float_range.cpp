#include "gala/data/float_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gala {

void FloatRange::include(const FloatRange& picture, const std::string& name) {
  low = std::min(low, picture.low);
  high = std::max(high, picture.high);
  if (picture.not_finite > 0 && not_finite == 0) first_not_finite = name;
  not_finite += picture.not_finite;
}

FloatRange range_of(std::span<const float> values) {
  FloatRange range;
  for (const float value : values) {
    if (std::isfinite(value)) {
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
    } else {
      range.not_finite = 1;
    }
  }
  return range;
}

FloatRangeWatch::FloatRangeWatch(const Preprocessing& preprocessing) {
  low_ = std::numeric_limits<double>::infinity();
  high_ = -low_;
  for (std::size_t c = 0; c < 3; ++c) {
    low_ = std::min(low_, (0 - preprocessing.mean[c]) / preprocessing.std[c]);
    high_ = std::max(high_, (1 - preprocessing.mean[c]) / preprocessing.std[c]);
  }
  normalised_ = low_ != 0 || high_ != 1;
}

std::vector<std::string> FloatRangeWatch::look(const FloatRange& range) {
  std::vector<std::string> news;
  const double margin = (high_ - low_) / 2;
  if (!said_range_ && (range.low < low_ - margin || range.high > high_ + margin)) {
    said_range_ = true;
    news.push_back(fmt::format(
        "the float pictures hold values from {:.4g} to {:.4g}, where this network was made for "
        "about {:.3g} to {:.3g}{}: floats are taken as they are (pixels from 0 to 255 belong in "
        "uint8 arrays)",
        range.low, range.high, low_, high_,
        normalised_ ? " (pixels from 0 to 1, less its mean, by its std)" : ""));
  }
  if (!said_not_finite_ && range.not_finite > 0) {
    said_not_finite_ = true;
    news.push_back(fmt::format("pictures hold values that are not finite numbers; the first: {}",
                               range.first_not_finite));
  }
  return news;
}

}  // namespace gala
