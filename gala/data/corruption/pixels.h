#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gala {

// Helpers shared by the corruptions. Levels run from 0 to 255 throughout, also as floats.

/// Red, green, blue and a fourth lane that is carried along: one SIMD register.
struct alignas(16) Pixel {
  float lane[4] = {0, 0, 0, 0};

  void add(float weight, const Pixel& other) {
    for (int i = 0; i < 4; ++i) lane[i] += weight * other.lane[i];
  }
};

/// A square image, row by row; zeros when it is made.
template <class Element>
class Raster {
 public:
  explicit Raster(int side) : side_(side), elements_(static_cast<std::size_t>(side * side)) {}
  int side() const { return side_; }
  /// How many elements there are.
  int size() const { return side_ * side_; }

  Element& operator[](int i) { return elements_[static_cast<std::size_t>(i)]; }
  const Element& operator[](int i) const { return elements_[static_cast<std::size_t>(i)]; }
  auto begin() { return elements_.begin(); }
  auto begin() const { return elements_.begin(); }
  auto end() { return elements_.end(); }
  auto end() const { return elements_.end(); }
  bool operator==(const Raster&) const = default;

 private:
  int side_;
  std::vector<Element> elements_;
};

using Colours = Raster<Pixel>;
/// An image of one channel.
using Plane = Raster<float>;

/// Published results are cut to whole levels, not rounded. A hair is added first, so that a flat
/// area keeps its level whatever the order of the additions.
inline std::uint8_t to_level(float value) {
  return static_cast<std::uint8_t>(std::clamp(value + 1.0f / 8192, 0.0f, 255.0f));
}

inline void read_colours(const std::uint8_t* bytes, Colours& colours) {
  for (int i = 0; i < colours.size(); ++i) {
    for (int c = 0; c < 3; ++c) colours[i].lane[c] = bytes[3 * i + c];
    colours[i].lane[3] = 0;
  }
}

inline void write_levels(const Colours& colours, std::uint8_t* bytes) {
  for (int i = 0; i < colours.size(); ++i) {
    for (int c = 0; c < 3; ++c) bytes[3 * i + c] = to_level(colours[i].lane[c]);
  }
}

/// What lies beyond the border; the last two go on for ever.
enum class Border {
  kReplicate,   ///< aaa|abcd|ddd
  kReflect,     ///< cba|abcd|dcb
  kReflect101,  ///< dcb|abcd|cba
};

template <Border border>
inline int border_index(int i, int size) {
  if (i >= 0 && i < size) return i;
  if constexpr (border == Border::kReplicate) return i < 0 ? 0 : size - 1;
  const int period = border == Border::kReflect ? 2 * size : 2 * size - 2;
  i %= period;
  if (i < 0) i += period;
  if (i < size) return i;
  return border == Border::kReflect ? period - 1 - i : period - i;
}

inline void add_scaled(float& sum, float weight, float value) {
  sum += weight * value;
}
inline float scaled(float weight, float value) {
  return weight * value;
}
inline Pixel scaled(float weight, const Pixel& value) {
  Pixel result;
  for (int i = 0; i < 4; ++i) result.lane[i] = weight * value.lane[i];
  return result;
}
inline void add_scaled(Pixel& sum, float weight, const Pixel& value) {
  sum.add(weight, value);
}

/// A Gaussian of radius int(truncate * sigma + 0.5), normalised, applied along rows and columns.
class GaussianFilter {
 public:
  explicit GaussianFilter(double sigma, double truncate = 4);
  int radius() const { return static_cast<int>(weights_.size()) - 1; }

  /// Filters in place; Element is Pixel or float.
  template <Border border, class Element>
  void apply(Raster<Element>& image) const {
    const int radius = this->radius(), side = image.side();
    if (radius == 0) return;
    Raster<Element> rows(side);
    std::vector<Element> line(static_cast<std::size_t>(side + 2 * radius));  // with its borders
    std::vector<Element> sum(static_cast<std::size_t>(side));
    for (int y = 0; y < side; ++y) {
      for (int x = -radius; x < side + radius; ++x) {
        line[static_cast<std::size_t>(x + radius)] =
            image[y * side + border_index<border>(x, side)];
      }
      accumulate(sum, &rows[y * side],
                 [&](int k) { return &line[static_cast<std::size_t>(k + radius)]; });
    }
    for (int y = 0; y < side; ++y) {
      accumulate(sum, &image[y * side],
                 [&](int k) { return &rows[border_index<border>(y + k, side) * side]; });
    }
  }

 private:
  /// out = sum over k of weight(k) * (the row that `source` gives for k).
  template <class Element, class Source>
  void accumulate(std::vector<Element>& sum, Element* out, const Source& source) const {
    const std::size_t side = sum.size();
    Element* const to = sum.data();
    const Element* centre = source(0);
    for (std::size_t x = 0; x < side; ++x) to[x] = scaled(weights_[0], centre[x]);
    for (int k = 1; k <= radius(); ++k) {
      const Element *before = source(-k), *after = source(k);
      const float weight = weights_[static_cast<std::size_t>(k)];
      for (std::size_t x = 0; x < side; ++x) {
        add_scaled(to[x], weight, before[x]);
        add_scaled(to[x], weight, after[x]);
      }
    }
    std::copy(sum.begin(), sum.end(), out);
  }

  std::vector<float> weights_;  // from the centre outwards
};

/// The value at (y, x) between four pixels.
template <Border border, class Element>
inline Element sample_bilinear(const Raster<Element>& image, float y, float x) {
  const int side = image.side();
  const auto floor = [](float value) {
    const int whole = static_cast<int>(value);  // towards zero
    return whole - (static_cast<float>(whole) > value ? 1 : 0);
  };
  const int top = floor(y), left = floor(x);
  const float fy = y - static_cast<float>(top), fx = x - static_cast<float>(left);
  const int row0 = border_index<border>(top, side) * side;
  const int row1 = border_index<border>(top + 1, side) * side;
  const int x0 = border_index<border>(left, side);
  const int x1 = border_index<border>(left + 1, side);
  Element sum = scaled((1 - fy) * (1 - fx), image[row0 + x0]);
  add_scaled(sum, (1 - fy) * fx, image[row0 + x1]);
  add_scaled(sum, fy * (1 - fx), image[row1 + x0]);
  add_scaled(sum, fy * fx, image[row1 + x1]);
  return sum;
}

/// The blur of a camera that moves while the shutter is open: a half Gaussian along a line.
/// ImageMagick's rule: 2 * radius + 1 taps at whole pixels, borders replicated.
class MotionFilter {
 public:
  MotionFilter(int radius, double sigma);

  /// `input` and `output` differ; the angle is in degrees. Values are cut to whole levels.
  template <class Element>
  void apply(double angle, const Raster<Element>& input, Raster<Element>& output) const {
    const int side = input.side();
    const double radians = angle * 3.14159265358979323846 / 180;
    const double dx = std::cos(radians), dy = std::sin(radians);
    std::fill(output.begin(), output.end(), Element{});
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const int shift_x = static_cast<int>(std::ceil(static_cast<double>(i) * dx - 0.5));
      const int shift_y = static_cast<int>(std::ceil(static_cast<double>(i) * dy - 0.5));
      // Columns with a source inside the row; the others take the row's end.
      const int first = std::clamp(-shift_x, 0, side), last = std::clamp(side - shift_x, 0, side);
      for (int y = 0; y < side; ++y) {
        const Element* in = &input[border_index<Border::kReplicate>(y + shift_y, side) * side];
        Element* out = &output[y * side];
        for (int x = 0; x < first; ++x) add_scaled(out[x], weights_[i], in[0]);
        for (int x = first; x < last; ++x) add_scaled(out[x], weights_[i], in[x + shift_x]);
        for (int x = last; x < side; ++x) add_scaled(out[x], weights_[i], in[side - 1]);
      }
    }
    cut_to_whole(output);
  }

 private:
  static void cut_to_whole(Colours& image);
  static void cut_to_whole(Plane& image);
  std::vector<float> weights_;
};

/// Enlarges the centre of an image so that it fills the image again: the middle ceil(side / factor)
/// pixels, interpolated linearly onto a grid with equal corners, trimmed to the side.
class ClippedZoom {
 public:
  ClippedZoom(int side, double factor, float weight = 1);

  /// First row (and column) of the part that is read, and its size.
  int crop_begin() const { return crop_begin_; }
  int crop_size() const { return crop_size_; }

  /// Near factors often read the very same pixels.
  bool same_pixels(const ClippedZoom& other) const {
    return crop_size_ == other.crop_size_ && zoomed_size_ == other.zoomed_size_;
  }
  void add_weight(float weight) { weight_ += weight; }

  /// Adds weight times the zoomed `input` to `sum`.
  template <class Element>
  void add_to(const Raster<Element>& input, Raster<Element>& sum) const {
    const int side = input.side();
    std::vector<Element> row(static_cast<std::size_t>(side));
    for (int y = 0; y < side; ++y) {
      const Tap& tap_y = taps_[static_cast<std::size_t>(y)];
      const Element* upper = &input[tap_y.first * side];
      const Element* lower = &input[tap_y.second * side];
      const float second = weight_ * tap_y.fraction, first = weight_ - second;
      Element* const at = row.data();
      for (int x = crop_begin_; x < crop_begin_ + crop_size_; ++x) {
        at[x] = scaled(first, upper[x]);
        add_scaled(at[x], second, lower[x]);
      }
      Element* out = &sum[y * side];
      for (int x = 0; x < side; ++x) {
        const Tap& tap = taps_[static_cast<std::size_t>(x)];
        add_scaled(out[x], 1 - tap.fraction, at[tap.first]);
        add_scaled(out[x], tap.fraction, at[tap.second]);
      }
    }
  }

 private:
  struct Tap {
    int first, second;
    float fraction;
  };
  int crop_begin_, crop_size_, zoomed_size_;
  float weight_;
  std::vector<Tap> taps_;
};

}  // namespace gala
