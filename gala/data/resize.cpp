#include "gala/data/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "gala/base/options.h"
#include "gala/data/clones.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

// The inner loops have versions for AVX2, which multiplies eight 32-bit integers at a time. All arithmetic
// is on integers, so the results are the same.

/// One output pixel of one row.
void sum_pixel(const std::uint8_t* pixel, const std::int32_t* weight, std::int32_t count,
               std::uint8_t* out) {
  std::int32_t red = kHalf, green = kHalf, blue = kHalf;
  for (std::int32_t i = 0; i < count; ++i, pixel += 3) {
    red += pixel[0] * weight[i];
    green += pixel[1] * weight[i];
    blue += pixel[2] * weight[i];
  }
  out[0] = to_byte(red), out[1] = to_byte(green), out[2] = to_byte(blue);
}

#if GALA_AVX2
/// Two pixels, of rows `stride` apart, each with the byte behind it, as eight integers.
__attribute__((target("avx2"))) inline __m256i load_two(const std::uint8_t* pixel,
                                                        std::int64_t stride) {
  std::int32_t first, second;
  std::memcpy(&first, pixel, 4);
  std::memcpy(&second, pixel + stride, 4);
  return _mm256_cvtepu8_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(first), second, 1));
}

/// The first `count` output pixels of four rows. Reads and writes the byte behind each pixel.
__attribute__((target("avx2"))) void sum_four_rows(const std::uint8_t* row, std::int64_t stride,
                                                   const ResizeWindow* windows,
                                                   const std::int32_t* weights, std::int64_t count,
                                                   std::uint8_t* out, std::int64_t out_stride) {
  const __m256i zero = _mm256_setzero_si256();
  for (std::int64_t x = 0; x < count; ++x, out += 3) {
    const std::uint8_t* pixel = row + std::int64_t{windows[x].first} * 3;
    const std::int32_t* weight = weights + windows[x].at;
    __m256i upper = _mm256_set1_epi32(kHalf), lower = upper;
    for (std::int32_t i = 0; i < windows[x].count; ++i, pixel += 3) {
      const __m256i factor = _mm256_set1_epi32(weight[i]);
      upper = _mm256_add_epi32(upper, _mm256_mullo_epi32(load_two(pixel, stride), factor));
      lower =
          _mm256_add_epi32(lower, _mm256_mullo_epi32(load_two(pixel + 2 * stride, stride), factor));
    }
    // Packing saturates: first to 16 bits, then to a byte. Each half holds one row of either pair.
    const __m256i words = _mm256_packs_epi32(_mm256_srai_epi32(upper, kPrecision),
                                             _mm256_srai_epi32(lower, kPrecision));
    const __m256i bytes = _mm256_packus_epi16(words, zero);
    const __m128i even = _mm256_castsi256_si128(bytes), odd = _mm256_extracti128_si256(bytes, 1);
    const std::int32_t levels[4] = {_mm_cvtsi128_si32(even), _mm_cvtsi128_si32(odd),
                                    _mm_extract_epi32(even, 1), _mm_extract_epi32(odd, 1)};
    for (int i = 0; i < 4; ++i) std::memcpy(out + i * out_stride, &levels[i], 4);
  }
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#endif

/// Weighted sums of pixels along the rows: `windows.size()` pixels from each.
void sum_along_rows(PixelView source, std::span<const ResizeWindow> windows,
                    const std::int32_t* weights, std::uint8_t* out) {
  const std::int64_t out_stride = static_cast<std::int64_t>(windows.size()) * 3;
  std::int64_t y = 0;
  const auto sum_one_by_one = [&](std::int64_t from_row, std::int64_t to_row, std::size_t from) {
    for (std::int64_t row = from_row; row < to_row; ++row) {
      for (std::size_t x = from; x < windows.size(); ++x) {
        sum_pixel(source.pixels + row * source.stride + std::int64_t{windows[x].first} * 3,
                  weights + windows[x].at, windows[x].count,
                  out + row * out_stride + static_cast<std::int64_t>(x) * 3);
      }
    }
  };
#if GALA_AVX2
  // Pixels whose window ends before the row does have a byte behind them, on both sides.
  std::size_t safe = 0;
  while (safe + 1 < windows.size() && windows[safe].first + windows[safe].count < source.width) {
    ++safe;
  }
  for (; has_avx2() && y + 4 <= source.height; y += 4) {
    sum_four_rows(source.pixels + y * source.stride, source.stride, windows.data(), weights,
                  static_cast<std::int64_t>(safe), out + y * out_stride, out_stride);
    sum_one_by_one(y, y + 4, safe);
  }
#endif
  sum_one_by_one(y, source.height, 0);
}

/// One output row as the weighted sum of source rows.
GALA_CLONES void sum_rows(const std::uint8_t* rows, std::int64_t stride,
                          std::span<const std::int32_t> weights, std::size_t length,
                          std::int32_t* sums, std::uint8_t* out) {
  for (std::size_t x = 0; x < length; ++x) sums[x] = kHalf;
  for (const std::int32_t weight : weights) {
    for (std::size_t x = 0; x < length; ++x) sums[x] += rows[x] * weight;
    rows += stride;
  }
  for (std::size_t x = 0; x < length; ++x) out[x] = to_byte(sums[x]);
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
    sum_along_rows(source, columns_.windows, columns_.weights.data(), narrowed_.data());
    wide = {narrowed_.data(), source.height, width, width * 3};
  }
  if (wide.height == height) return wide;

  rows_.prepare(wide.height, height, filter);
  const auto length = static_cast<std::size_t>(width * 3);
  result_.resize(static_cast<std::size_t>(height) * length);
  sums_.resize(length);
  for (std::int64_t y = 0; y < height; ++y) {
    const ResizeWindow& window = rows_.windows[static_cast<std::size_t>(y)];
    sum_rows(
        wide.pixels + window.first * wide.stride, wide.stride,
        std::span(rows_.weights)
            .subspan(static_cast<std::size_t>(window.at), static_cast<std::size_t>(window.count)),
        length, sums_.data(), result_.data() + static_cast<std::size_t>(y) * length);
  }
  return {result_.data(), height, width, width * 3};
}

}  // namespace gala
