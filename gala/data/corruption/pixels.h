#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gala {

// Helpers shared by the corruptions. Levels run from 0 to 255 throughout, also as floats.

inline constexpr int kSide = 32;
inline constexpr int kPixels = kSide * kSide;
inline constexpr int kValues = kPixels * 3;

/// Red, green, blue and a fourth lane that is carried along: one SIMD register.
struct alignas(16) Pixel {
  float lane[4] = {0, 0, 0, 0};

  void add(float weight, const Pixel& other) {
    for (int i = 0; i < 4; ++i) lane[i] += weight * other.lane[i];
  }
};

/// A 32x32 colour image, row by row.
using Colours = std::array<Pixel, kPixels>;
/// A 32x32 image of one channel.
using Plane = std::array<float, kPixels>;

/// Published results are cut to whole levels, not rounded. A hair is added first, so that a flat
/// area keeps its level whatever the order of the additions.
inline std::uint8_t to_level(float value) {
  return static_cast<std::uint8_t>(std::clamp(value + 1.0f / 8192, 0.0f, 255.0f));
}

inline void read_colours(const std::uint8_t* bytes, Colours& colours) {
  for (int i = 0; i < kPixels; ++i) {
    for (int c = 0; c < 3; ++c) colours[i].lane[c] = bytes[3 * i + c];
    colours[i].lane[3] = 0;
  }
}

inline void write_levels(const Colours& colours, std::uint8_t* bytes) {
  for (int i = 0; i < kPixels; ++i) {
    for (int c = 0; c < 3; ++c) bytes[3 * i + c] = to_level(colours[i].lane[c]);
  }
}

/// What lies beyond the border; all are for positions at most one image away.
enum class Border {
  kReplicate,   ///< aaa|abcd|ddd
  kReflect,     ///< cba|abcd|dcb
  kReflect101,  ///< dcb|abcd|cba
};

template <Border border>
inline int border_index(int i, int size = kSide) {
  if constexpr (border == Border::kReplicate) {
    return std::clamp(i, 0, size - 1);
  } else if constexpr (border == Border::kReflect) {
    return i < 0 ? -1 - i : i >= size ? 2 * size - 1 - i : i;
  } else {
    return i < 0 ? -i : i >= size ? 2 * size - 2 - i : i;
  }
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
  void apply(std::array<Element, kPixels>& image) const {
    const int radius = this->radius();
    if (radius == 0) return;
    std::array<Element, kPixels> rows;
    std::array<Element, kSide + 2 * kMaxRadius> line;  // a row with its borders
    for (int y = 0; y < kSide; ++y) {
      for (int x = -radius; x < kSide + radius; ++x) {
        line[x + radius] = image[y * kSide + border_index<border>(x)];
      }
      accumulate(&rows[y * kSide], [&](int k) { return &line[k + radius]; });
    }
    for (int y = 0; y < kSide; ++y) {
      accumulate(&image[y * kSide],
                 [&](int k) { return &rows[border_index<border>(y + k) * kSide]; });
    }
  }

 private:
  static constexpr int kMaxRadius = 20;

  /// out = sum over k of weight(k) * (the row that `source` gives for k).
  template <class Element, class Source>
  void accumulate(Element* out, const Source& source) const {
    Element sum[kSide];
    const Element* centre = source(0);
    for (int x = 0; x < kSide; ++x) sum[x] = scaled(weights_[0], centre[x]);
    for (int k = 1; k <= radius(); ++k) {
      const Element *before = source(-k), *after = source(k);
      for (int x = 0; x < kSide; ++x) {
        add_scaled(sum[x], weights_[k], before[x]);
        add_scaled(sum[x], weights_[k], after[x]);
      }
    }
    std::copy(sum, sum + kSide, out);
  }

  std::vector<float> weights_;  // from the centre outwards
};

/// The value at (y, x) between four pixels; positions are at most one image away.
template <Border border, class Element>
inline Element sample_bilinear(const std::array<Element, kPixels>& image, float y, float x) {
  // Casting cuts towards zero: that is the floor once everything is positive.
  const int top = static_cast<int>(y + kSide) - kSide, left = static_cast<int>(x + kSide) - kSide;
  const float fy = y - static_cast<float>(top), fx = x - static_cast<float>(left);
  const int row0 = border_index<border>(top) * kSide;
  const int row1 = border_index<border>(top + 1) * kSide;
  const int x0 = border_index<border>(left);
  const int x1 = border_index<border>(left + 1);
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
  void apply(double angle, const std::array<Element, kPixels>& input,
             std::array<Element, kPixels>& output) const {
    const double radians = angle * 3.14159265358979323846 / 180;
    const double dx = std::cos(radians), dy = std::sin(radians);
    output.fill(Element{});
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const int shift_x = static_cast<int>(std::ceil(static_cast<double>(i) * dx - 0.5));
      const int shift_y = static_cast<int>(std::ceil(static_cast<double>(i) * dy - 0.5));
      // Columns with a source inside the row; the others take the row's end.
      const int first = std::clamp(-shift_x, 0, kSide),
                last = std::clamp(kSide - shift_x, 0, kSide);
      for (int y = 0; y < kSide; ++y) {
        const Element* in = &input[border_index<Border::kReplicate>(y + shift_y) * kSide];
        Element* out = &output[y * kSide];
        for (int x = 0; x < first; ++x) add_scaled(out[x], weights_[i], in[0]);
        for (int x = first; x < last; ++x) add_scaled(out[x], weights_[i], in[x + shift_x]);
        for (int x = last; x < kSide; ++x) add_scaled(out[x], weights_[i], in[kSide - 1]);
      }
    }
    cut_to_whole(output);
  }

 private:
  static void cut_to_whole(Colours& image);
  static void cut_to_whole(Plane& image);
  std::vector<float> weights_;
};

/// Enlarges the centre of an image so that it fills the image again: the middle ceil(32 / factor)
/// pixels, interpolated linearly onto a grid with equal corners, trimmed to 32.
class ClippedZoom {
 public:
  explicit ClippedZoom(double factor, float weight = 1);

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
  void add_to(const std::array<Element, kPixels>& input, std::array<Element, kPixels>& sum) const {
    std::array<Element, kSide> row;
    for (int y = 0; y < kSide; ++y) {
      const Element* upper = &input[taps_[y].first * kSide];
      const Element* lower = &input[taps_[y].second * kSide];
      const float second = weight_ * taps_[y].fraction, first = weight_ - second;
      for (int x = crop_begin_; x < crop_begin_ + crop_size_; ++x) {
        row[x] = scaled(first, upper[x]);
        add_scaled(row[x], second, lower[x]);
      }
      Element* out = &sum[y * kSide];
      for (int x = 0; x < kSide; ++x) {
        add_scaled(out[x], 1 - taps_[x].fraction, row[taps_[x].first]);
        add_scaled(out[x], taps_[x].fraction, row[taps_[x].second]);
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
  std::array<Tap, kSide> taps_;
};

}  // namespace gala
