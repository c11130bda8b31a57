#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gala {

enum class Filter { kNearest, kBox, kBilinear, kBicubic };
constexpr std::array<std::string_view, 4> enum_names(Filter) {
  return {"nearest", "box", "bilinear", "bicubic"};
}
/// Throws ConfigError for an unknown name.
Filter parse_filter(std::string_view name);

/// A rectangle of interleaved RGB bytes that someone else owns.
struct PixelView {
  const std::uint8_t* pixels = nullptr;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t stride = 0;  ///< bytes from one row to the next
};

/// Which source pixels make one output pixel: `count` of them from `first`, by weights[at...].
struct ResizeWindow {
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t at = 0;
};

/// Resizes 8-bit RGB pictures as PIL does: when shrinking, the filter is stretched over all source
/// pixels (antialiasing); first along rows, then along columns, each with 22-bit fixed-point
/// weights and rounding to 8 bits. The arithmetic is PIL's, so are the results. Keeps its weights
/// and buffers for the next picture of the same size; one object a thread.
class Resizer {
 public:
  /// Resizes to `height` x `width`; the result lies in this object until the next call, or in the
  /// source itself when there is nothing to do.
  PixelView resize(PixelView source, std::int64_t height, std::int64_t width, Filter filter);

 private:
  struct Weights {
    std::int64_t from = 0, to = 0;
    Filter filter = Filter::kNearest;
    std::vector<ResizeWindow> windows;
    std::vector<std::int32_t> weights;
    void prepare(std::int64_t from_size, std::int64_t to_size, Filter new_filter);
  };

  PixelView resize_nearest(PixelView source, std::int64_t height, std::int64_t width);

  Weights columns_, rows_;
  std::vector<std::uint8_t> narrowed_, result_;
  std::vector<std::int32_t> sums_;
};

}  // namespace gala
