#include "gala/data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace gala {
namespace {

constexpr double kJitter = 0.3;

/// ITU-R 601 luminance in 16-bit fixed point, as PIL rounds it.
int luminance(const std::uint8_t* pixel) {
  return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

/// from + factor (to - from), cut off to a byte.
std::uint8_t blend(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

/// Every value blended with the same level, by a table.
void blend_all(std::span<std::uint8_t> pixels, int from, double factor) {
  std::array<std::uint8_t, 256> table{};
  for (int level = 0; level < 256; ++level) {
    table[static_cast<std::size_t>(level)] = blend(from, level, static_cast<float>(factor));
  }
  for (std::uint8_t& value : pixels) value = table[value];
}

void flip(std::span<std::uint8_t> pixels, std::int64_t height, std::int64_t width) {
  for (std::int64_t y = 0; y < height; ++y) {
    std::uint8_t* row = pixels.data() + y * width * 3;
    for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
      for (int c = 0; c < 3; ++c) std::swap(row[left * 3 + c], row[right * 3 + c]);
    }
  }
}

/// Hue, saturation, value as bytes.
std::array<int, 3> to_hsv(const std::uint8_t* pixel) {
  const int most = std::max({pixel[0], pixel[1], pixel[2]});
  const int least = std::min({pixel[0], pixel[1], pixel[2]});
  if (most == least) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  // How far a channel lies below the largest, as a share of the range.
  const auto below = [&](int channel) { return static_cast<float>(most - pixel[channel]) / range; };
  float hue = 0;
  if (pixel[0] == most) {
    hue = below(2) - below(1);
  } else if (pixel[1] == most) {
    hue = 2 + below(0) - below(2);
  } else {
    hue = 4 + below(1) - below(0);
  }
  // What fmod(.., 1) gives, without a call: the sum lies in 5/6 .. 11/6.
  const double turned = hue / 6.0 + 1.0;
  hue = static_cast<float>(turned >= 1 ? turned - 1 : turned);
  return {std::clamp(static_cast<int>(hue * 255.0), 0, 255),
          std::clamp(static_cast<int>(range / static_cast<float>(most) * 255.0), 0, 255), most};
}

void from_hsv(const std::array<int, 3>& hsv, std::uint8_t* pixel) {
  const auto [hue, saturation, value] = hsv;
  const float sector = static_cast<float>(hue) * 6.0f / 255.0f;
  const auto whole = static_cast<int>(sector);
  const float rest = sector - static_cast<float>(whole);
  const float depth = static_cast<float>(saturation) / 255.0f;
  const auto scaled = [&](float by) {
    // A float and a half add up exactly in double, so this rounds as lround does.
    const double rounded = static_cast<double>(static_cast<float>(value) * (1 - by)) + 0.5;
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(rounded), 0, 255));
  };
  const std::array<std::uint8_t, 4> levels = {static_cast<std::uint8_t>(value),
                                              scaled(depth * (1 - rest)), scaled(depth),
                                              scaled(depth * rest)};
  // Which of them is red, green and blue in each sixth of the circle.
  static constexpr std::uint8_t kChannels[6][3] = {{0, 1, 2}, {3, 0, 2}, {2, 0, 1},
                                                   {2, 3, 0}, {1, 2, 0}, {0, 2, 3}};
  const std::uint8_t* channels = kChannels[whole % 6];
  for (int c = 0; c < 3; ++c) pixel[c] = levels[channels[c]];
}

void jitter_colours(std::span<std::uint8_t> pixels, Random& random) {
  std::array<int, 4> order = {0, 1, 2, 3};
  for (std::size_t i = 4; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const double brightness = random.uniform(1 - kJitter, 1 + kJitter);
  const double contrast = random.uniform(1 - kJitter, 1 + kJitter);
  const double saturation = random.uniform(1 - kJitter, 1 + kJitter);
  const double hue = random.uniform(-kJitter, kJitter);
  for (int which : order) {
    if (which == 0) adjust_brightness(pixels, brightness);
    if (which == 1) adjust_contrast(pixels, contrast);
    if (which == 2) adjust_saturation(pixels, saturation);
    if (which == 3) adjust_hue(pixels, hue);
  }
}

void copy_pixels(PixelView view, std::vector<std::uint8_t>& into) {
  const std::int64_t length = view.width * 3;
  into.resize(static_cast<std::size_t>(view.height * length));
  for (std::int64_t y = 0; y < view.height; ++y) {
    std::copy_n(view.pixels + y * view.stride, length, into.data() + y * length);
  }
}

}  // namespace

CropWindow random_window(std::int64_t height, std::int64_t width, double smallest, Random& random) {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const double low = std::log(3.0 / 4), high = std::log(4.0 / 3);
  for (int i = 0; i < 10; ++i) {
    const double target = area * random.uniform(smallest, 1);
    const double aspect = std::exp(random.uniform(low, high));
    const std::int64_t w = std::lrint(std::sqrt(target * aspect));
    const std::int64_t h = std::lrint(std::sqrt(target / aspect));
    if (w > 0 && w <= width && h > 0 && h <= height) {
      const auto top = random.below(static_cast<std::uint64_t>(height - h + 1));
      const auto left = random.below(static_cast<std::uint64_t>(width - w + 1));
      return {static_cast<std::int64_t>(top), static_cast<std::int64_t>(left), h, w};
    }
  }
  const double aspect = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t h = height, w = width;
  if (aspect < 3.0 / 4) h = std::lrint(static_cast<double>(width) / (3.0 / 4));
  if (aspect > 4.0 / 3) w = std::lrint(static_cast<double>(height) * (4.0 / 3));
  return {(height - h) / 2, (width - w) / 2, h, w};
}

void adjust_brightness(std::span<std::uint8_t> pixels, double factor) {
  blend_all(pixels, 0, factor);
}

void adjust_contrast(std::span<std::uint8_t> pixels, double factor) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < pixels.size(); i += 3) sum += luminance(&pixels[i]);
  const auto mean =
      static_cast<int>(static_cast<double>(sum) / static_cast<double>(pixels.size() / 3) + 0.5);
  blend_all(pixels, mean, factor);
}

void adjust_saturation(std::span<std::uint8_t> pixels, double factor) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    const int grey = luminance(&pixels[i]);
    for (std::size_t c = i; c < i + 3; ++c) {
      pixels[c] = blend(grey, pixels[c], static_cast<float>(factor));
    }
  }
}

void adjust_hue(std::span<std::uint8_t> pixels, double turn) {
  const int shift = static_cast<int>(turn * 255);
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    auto hsv = to_hsv(&pixels[i]);
    hsv[0] = (hsv[0] + shift) & 255;
    from_hsv(hsv, &pixels[i]);
  }
}

void make_grey(std::span<std::uint8_t> pixels) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    pixels[i] = pixels[i + 1] = pixels[i + 2] = static_cast<std::uint8_t>(luminance(&pixels[i]));
  }
}

void DomainBedAugment::apply(const Image& image, std::uint64_t step, std::uint64_t slot,
                             TransformScratch& scratch, float* out) const {
  Random random(seed_, "augment", {step, slot});
  const CropWindow window = random_window(image.height, image.width, 0.7, random);
  const PixelView whole = view_of(image);
  const PixelView part = {whole.pixels + window.top * whole.stride + window.left * 3, window.height,
                          window.width, whole.stride};
  copy_pixels(resized(part, scratch), scratch.pixels);
  if (random.uniform() < 0.5) flip(scratch.pixels, size(), size());
  jitter_colours(scratch.pixels, random);
  if (random.uniform() < 0.1) make_grey(scratch.pixels);
  normalize(scratch.pixels, out);
}

void CropFlipAugment::apply(const Image& image, std::uint64_t step, std::uint64_t slot,
                            TransformScratch& scratch, float* out) const {
  crop(image, step, slot, scratch);
  normalize(scratch.pixels, out);
}

void CropFlipAugment::crop(const Image& image, std::uint64_t step, std::uint64_t slot,
                           TransformScratch& scratch) const {
  Random random(seed_, "augment", {step, slot});
  const std::int64_t side = size();
  const PixelView source = resized(view_of(image), scratch);
  const auto range = static_cast<std::uint64_t>(2 * padding_ + 1);
  const std::int64_t down = static_cast<std::int64_t>(random.below(range)) - padding_;
  const std::int64_t right = static_cast<std::int64_t>(random.below(range)) - padding_;
  scratch.pixels.assign(static_cast<std::size_t>(side * side * 3), 0);
  // Row y of the crop is row y + down of the source, where that exists.
  const std::int64_t first_x = std::max<std::int64_t>(0, -right);
  const std::int64_t count_x = std::max<std::int64_t>(0, side - std::abs(right));
  for (std::int64_t y = std::max<std::int64_t>(0, -down); y < std::min(side, side - down); ++y) {
    std::copy_n(source.pixels + (y + down) * source.stride + (first_x + right) * 3, count_x * 3,
                scratch.pixels.data() + (y * side + first_x) * 3);
  }
  if (random.uniform() < 0.5) flip(scratch.pixels, side, side);
}

}  // namespace gala
