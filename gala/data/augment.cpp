#include "gala/data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gala/data/colour.h"

namespace gala {
namespace {

constexpr double kJitter = 0.3;

void flip(std::span<std::uint8_t> pixels, std::int64_t height, std::int64_t width) {
  for (std::int64_t y = 0; y < height; ++y) {
    std::uint8_t* row = pixels.data() + y * width * 3;
    for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
      for (int c = 0; c < 3; ++c) std::swap(row[left * 3 + c], row[right * 3 + c]);
    }
  }
}

void jitter_colours(std::span<std::uint8_t> planes, Random& random) {
  std::array<int, 4> order = {0, 1, 2, 3};
  random.shuffle(order);
  const double brightness = random.uniform(1 - kJitter, 1 + kJitter);
  const double contrast = random.uniform(1 - kJitter, 1 + kJitter);
  const double saturation = random.uniform(1 - kJitter, 1 + kJitter);
  const double hue = random.uniform(-kJitter, kJitter);
  for (int which : order) {
    if (which == 0) adjust_brightness(planes, brightness);
    if (which == 1) adjust_contrast(planes, contrast);
    if (which == 2) adjust_saturation(planes, saturation);
    if (which == 3) adjust_hue(planes, hue);
  }
}

/// The planes of red, green and blue, one behind the other; mirrored on request.
void take_planes(PixelView view, bool flipped, std::vector<std::uint8_t>& planes) {
  const std::int64_t area = view.height * view.width;
  planes.resize(static_cast<std::size_t>(3 * area));
  for (std::int64_t y = 0; y < view.height; ++y) {
    const std::uint8_t* row = view.pixels + y * view.stride;
    std::uint8_t* red = planes.data() + y * view.width;
    for (std::int64_t x = 0; x < view.width; ++x) {
      const std::uint8_t* pixel = row + 3 * (flipped ? view.width - 1 - x : x);
      for (int c = 0; c < 3; ++c) red[c * area + x] = pixel[c];
    }
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

void DomainBedAugment::apply(const Image& image, std::uint64_t step, std::uint64_t slot,
                             TransformScratch& scratch, float* out) const {
  Random random(seed_, "augment", {step, slot});
  const CropWindow window = random_window(image.height, image.width, 0.7, random);
  const PixelView whole = view_of(image);
  const PixelView part = {whole.pixels + window.top * whole.stride + window.left * 3, window.height,
                          window.width, whole.stride};
  const bool flipped = random.uniform() < 0.5;
  take_planes(resized(part, scratch), flipped, scratch.pixels);
  jitter_colours(scratch.pixels, random);
  if (random.uniform() < 0.1) make_grey(scratch.pixels);
  normalize_planes(scratch.pixels, out);
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
