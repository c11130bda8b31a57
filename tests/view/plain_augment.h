#pragma once
// `augment` without noise once more, step by step in double: loops over pixels for the colours, LibTorch's
// operations on a padded picture for the rest.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gala/view/augment.h"

namespace gala::test {

inline double clip(double value, double least = 0) {
  return std::clamp(value, least, 1.0);
}

inline double plain_grey(const double* pixel) {
  return 0.2989 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
}

/// By the sector in which the hue lies, as in textbooks.
inline void turn_hue(double* pixel, double turn) {
  const double most = std::max({pixel[0], pixel[1], pixel[2]});
  const double chroma = most - std::min({pixel[0], pixel[1], pixel[2]});
  if (chroma == 0) return;
  double hue = most == pixel[0]   ? (pixel[1] - pixel[2]) / chroma
               : most == pixel[1] ? (pixel[2] - pixel[0]) / chroma + 2
                                  : (pixel[0] - pixel[1]) / chroma + 4;
  hue = std::fmod(hue + 6 * turn + 12, 6.0);
  const double second = chroma * (1 - std::abs(std::fmod(hue, 2.0) - 1)), least = most - chroma;
  const int sector = static_cast<int>(hue);
  constexpr int kLargest[] = {0, 1, 1, 2, 2, 0}, kMiddle[] = {1, 0, 2, 1, 0, 2};
  std::fill_n(pixel, 3, least);
  pixel[kLargest[sector]] += chroma;
  pixel[kMiddle[sector]] += second;
}

inline void change_pixel(double* pixel, ColourTurn turn, const AugmentDraw& draw, double mean) {
  const double grey = plain_grey(pixel);
  if (turn == kHue) turn_hue(pixel, draw.hue);
  for (int c = 0; c < 3; ++c) {
    double& value = pixel[c];
    if (turn == kBrightness) value = clip(draw.brightness * value);
    if (turn == kContrast) value = clip(draw.contrast * value + (1 - draw.contrast) * mean);
    if (turn == kSaturation) value = clip(draw.saturation * value + (1 - draw.saturation) * grey);
    if (turn == kGamma) value = clip(std::pow(clip(value, 1e-8), draw.gamma));
  }
}

/// Of [H, W, 3].
inline void change_colours(const at::Tensor& image, const AugmentDraw& draw) {
  const std::int64_t pixels = image.size(0) * image.size(1);
  auto* values = image.mutable_data_ptr<double>();
  for (const ColourTurn turn : draw.order) {
    double mean = 0;
    for (std::int64_t i = 0; i < pixels; ++i) {
      mean += plain_grey(values + 3 * i) / static_cast<double>(pixels);
    }
    for (std::int64_t i = 0; i < pixels; ++i) change_pixel(values + 3 * i, turn, draw, mean);
  }
}

/// Of [N, 3, H, W].
inline at::Tensor change_places(const at::Tensor& images, const AugmentDraw& draw) {
  const std::int64_t height = images.size(2), width = images.size(3);
  const double down = std::nearbyint(draw.shift_y * static_cast<double>(height) / 16);
  const double right = std::nearbyint(draw.shift_x * static_cast<double>(width) / 16);
  const double angle = draw.angle * std::numbers::pi / 180;
  const auto axis = [](std::int64_t size, double shift) {
    return at::arange(size, at::kDouble) - static_cast<double>(size - 1) / 2 - shift;
  };
  const at::Tensor y = axis(height, down).unsqueeze(1), x = axis(width, right).unsqueeze(0);
  const at::Tensor from_x = (std::cos(angle) * x + std::sin(angle) * y) / draw.scale;
  const at::Tensor from_y = (std::cos(angle) * y - std::sin(angle) * x) / draw.scale;
  const at::Tensor grid = at::stack({from_x * 2 / width, from_y * 2 / height}, -1)
                              .unsqueeze(0)
                              .expand({images.size(0), -1, -1, -1});
  const at::Tensor frame = at::ones_like(images.slice(1, 0, 1));
  const at::Tensor both = at::grid_sampler(at::cat({images, frame}, 1), grid, 0, 0, false);
  return both.slice(1, 0, 3) * both.slice(1, 3, 4);
}

inline at::Tensor change_sharpness(const at::Tensor& images, const AugmentDraw& draw) {
  at::Tensor row = at::exp(-0.5 * (at::arange(-2, 3, at::kDouble) / draw.sigma).square());
  row = row / row.sum();
  const at::Tensor kernel = at::outer(row, row).expand({3, 1, 5, 5}).contiguous();
  return at::conv2d(at::reflection_pad2d(images, {2, 2, 2, 2}), kernel, {}, 1, at::IntArrayRef{0},
                    1, 3);
}

inline at::Tensor plainly_augmented(const at::Tensor& images, const AugmentDraw& draw,
                                    const AugmentOptions& options,
                                    const Preprocessing& preprocessing) {
  const auto column = [](const std::array<double, 3>& values) {
    return at::tensor(values, at::kDouble).view({1, 3, 1, 1});
  };
  const at::Tensor mean = column(preprocessing.mean), std = column(preprocessing.std);
  const bool bgr = preprocessing.channels == "bgr";
  const std::int64_t height = images.size(2), width = images.size(3);
  at::Tensor result = (images.to(at::kDouble) * std + mean).clamp(0, 1);
  if (bgr) result = result.flip({1});
  result = result.permute({0, 2, 3, 1}).contiguous();
  for (std::int64_t i = 0; i < result.size(0); ++i) change_colours(result[i], draw);
  result = result.permute({0, 3, 1, 2}).contiguous();
  const std::vector<std::int64_t> padding = {width / 2, width / 2, height / 2, height / 2};
  result = options.padding == PadMode::kEdge ? at::replication_pad2d(result, padding)
                                             : at::reflection_pad2d(result, padding);
  result = change_places(result, draw);
  if (options.blur) result = change_sharpness(result, draw);
  result = result.slice(2, height / 2, height / 2 + height).slice(3, width / 2, width / 2 + width);
  if (draw.flip) result = result.flip({3});
  result = result.clamp(0, 1);
  return ((bgr ? result.flip({1}) : result) - mean) / std;
}

}  // namespace gala::test
