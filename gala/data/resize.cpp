#include "gala/data/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "gala/base/options.h"

namespace gala {
namespace {

// 32 bits less 8 for the pixel and 2 for the overshoot of a cubic.
constexpr int kPrecision = 22;
constexpr std::int32_t kHalf = 1 << (kPrecision - 1);

double support_of(Filter filter) {
  switch (filter) {
    case Filter::kBox:
      return 0.5;
    case Filter::kBilinear:
      return 1;
    default:
      return 2;
  }
}

double value_of(Filter filter, double x) {
  switch (filter) {
    case Filter::kBox:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
    case Filter::kBilinear:
      x = std::abs(x);
      return x < 1 ? 1 - x : 0;
    default: {
      // Keys' cubic with a = -1/2.
      constexpr double a = -0.5;
      x = std::abs(x);
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
      return 0;
    }
  }
}

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
}

}  // namespace

Filter parse_filter(std::string_view name) {
  Filter filter{};
  if (!parse_value(name, filter)) {
    fail<ConfigError>("interpolation cannot be \"{}\" (expected {})", name,
                      accepted_values<Filter>());
  }
  return filter;
}

void Resizer::Weights::prepare(std::int64_t from_size, std::int64_t to_size, Filter new_filter) {
  if (from == from_size && to == to_size && filter == new_filter) return;
  from = from_size, to = to_size, filter = new_filter;
  windows.clear();
  weights.clear();
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = std::max(scale, 1.0);
  const double squeeze = 1 / stretch;
  const double support = support_of(filter) * stretch;
  std::vector<double> values;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support + 0.5));
    const auto end = std::min(from, static_cast<std::int64_t>(centre + support + 0.5));
    values.clear();
    double total = 0;
    for (std::int64_t x = first; x < end; ++x) {
      values.push_back(value_of(filter, (static_cast<double>(x) - centre + 0.5) * squeeze));
      total += values.back();
    }
    windows.push_back({static_cast<std::int32_t>(first), static_cast<std::int32_t>(end - first),
                       static_cast<std::int32_t>(weights.size())});
    for (double value : values) {
      const double weight = (total != 0 ? value * (1 / total) : value) * (1 << kPrecision);
      weights.push_back(static_cast<std::int32_t>(weight < 0 ? weight - 0.5 : weight + 0.5));
    }
  }
}

PixelView Resizer::resize_nearest(PixelView source, std::int64_t height, std::int64_t width) {
  result_.resize(static_cast<std::size_t>(height * width * 3));
  const double down = static_cast<double>(source.height) / static_cast<double>(height);
  const double across = static_cast<double>(source.width) / static_cast<double>(width);
  std::uint8_t* out = result_.data();
  for (std::int64_t y = 0; y < height; ++y) {
    const auto from_y = std::min(source.height - 1,
                                 static_cast<std::int64_t>((static_cast<double>(y) + 0.5) * down));
    const std::uint8_t* row = source.pixels + from_y * source.stride;
    for (std::int64_t x = 0; x < width; ++x, out += 3) {
      const auto from_x = std::min(
          source.width - 1, static_cast<std::int64_t>((static_cast<double>(x) + 0.5) * across));
      std::memcpy(out, row + from_x * 3, 3);
    }
  }
  return {result_.data(), height, width, width * 3};
}

PixelView Resizer::resize(PixelView source, std::int64_t height, std::int64_t width,
                          Filter filter) {
  if (source.height == height && source.width == width) return source;
  if (filter == Filter::kNearest) return resize_nearest(source, height, width);

  PixelView wide = source;
  if (source.width != width) {
    columns_.prepare(source.width, width, filter);
    narrowed_.resize(static_cast<std::size_t>(source.height * width * 3));
    std::uint8_t* out = narrowed_.data();
    for (std::int64_t y = 0; y < source.height; ++y) {
      const std::uint8_t* row = source.pixels + y * source.stride;
      for (const Window& window : columns_.windows) {
        const std::uint8_t* pixel = row + std::int64_t{window.first} * 3;
        const std::int32_t* weight = columns_.weights.data() + window.at;
        std::int32_t red = kHalf, green = kHalf, blue = kHalf;
        for (std::int32_t i = 0; i < window.count; ++i, pixel += 3) {
          red += pixel[0] * weight[i];
          green += pixel[1] * weight[i];
          blue += pixel[2] * weight[i];
        }
        out[0] = to_byte(red), out[1] = to_byte(green), out[2] = to_byte(blue);
        out += 3;
      }
    }
    wide = {narrowed_.data(), source.height, width, width * 3};
  }
  if (wide.height == height) return wide;

  rows_.prepare(wide.height, height, filter);
  const auto length = static_cast<std::size_t>(width * 3);
  result_.resize(static_cast<std::size_t>(height) * length);
  sums_.resize(length);
  for (std::int64_t y = 0; y < height; ++y) {
    const Window& window = rows_.windows[static_cast<std::size_t>(y)];
    std::fill(sums_.begin(), sums_.end(), kHalf);
    std::int32_t* sums = sums_.data();
    for (std::int32_t i = 0; i < window.count; ++i) {
      const std::uint8_t* row = wide.pixels + (window.first + i) * wide.stride;
      const std::int32_t weight = rows_.weights[static_cast<std::size_t>(window.at + i)];
      for (std::size_t x = 0; x < length; ++x) sums[x] += row[x] * weight;
    }
    std::uint8_t* out = result_.data() + static_cast<std::size_t>(y) * length;
    for (std::size_t x = 0; x < length; ++x) out[x] = to_byte(sums[x]);
  }
  return {result_.data(), height, width, width * 3};
}

}  // namespace gala
