#include "gala/data/augmix.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gala {
namespace {

using Histogram = std::array<std::int64_t, 256>;
using Table = std::array<std::uint8_t, 256>;

/// Looks every value up in a table made from the histogram of its channel.
template <class MakeTable>
void map_channels(std::span<std::uint8_t> pixels, MakeTable&& make_table) {
  for (std::size_t channel = 0; channel < 3; ++channel) {
    Histogram histogram{};
    for (std::size_t i = channel; i < pixels.size(); i += 3) ++histogram[pixels[i]];
    const Table table = make_table(histogram);
    for (std::size_t i = channel; i < pixels.size(); i += 3) pixels[i] = table[pixels[i]];
  }
}

Table identity() {
  Table table{};
  for (std::size_t level = 0; level < 256; ++level) table[level] = static_cast<std::uint8_t>(level);
  return table;
}

Table stretched(const Histogram& histogram) {
  int low = 0, high = 255;
  while (low < 255 && histogram[static_cast<std::size_t>(low)] == 0) ++low;
  while (high > 0 && histogram[static_cast<std::size_t>(high)] == 0) --high;
  Table table = identity();
  if (high <= low) return table;
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  for (int level = 0; level < 256; ++level) {
    table[static_cast<std::size_t>(level)] =
        static_cast<std::uint8_t>(std::clamp(static_cast<int>(level * scale + offset), 0, 255));
  }
  return table;
}

Table equalized(const Histogram& histogram) {
  std::int64_t total = 0, last = 0;
  for (const std::int64_t count : histogram) {
    total += count;
    if (count > 0) last = count;
  }
  // A single level, or too few pixels for a step of one: PIL leaves the channel alone.
  const std::int64_t step = (total - last) / 255;
  Table table = identity();
  if (step == 0) return table;
  std::int64_t sum = step / 2;
  for (std::size_t level = 0; level < 256; ++level) {
    table[level] = static_cast<std::uint8_t>(std::min<std::int64_t>(255, sum / step));
    sum += histogram[level];
  }
  return table;
}

/// PIL rounds the entries of a rotation to 15 digits, so that right angles are exact.
double rounded(double value) {
  return std::round(value * 1e15) / 1e15;
}

/// A level of up to AugMix's severity, as a share of `largest`.
double draw_level(Random& random, double largest) {
  return random.uniform(0.1, AugMixAugment::kSeverity) * largest / 10;
}

double draw_sign(Random& random) {
  return random.uniform() > 0.5 ? -1 : 1;
}

/// Uniform on the simplex, which is Dirichlet(1, ..., 1): normalised exponential draws.
std::array<double, AugMixAugment::kChains> draw_weights(Random& random) {
  std::array<double, AugMixAugment::kChains> weights{};
  double sum = 0;
  for (double& weight : weights) sum += weight = -std::log(1 - random.uniform());
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

void stretch_contrast(std::span<std::uint8_t> pixels) {
  map_channels(pixels, stretched);
}

void equalize_histogram(std::span<std::uint8_t> pixels) {
  map_channels(pixels, equalized);
}

void posterize(std::span<std::uint8_t> pixels, int bits) {
  const int mask = ~((1 << (8 - bits)) - 1);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(value & mask);
}

void solarize(std::span<std::uint8_t> pixels, int threshold) {
  for (std::uint8_t& value : pixels) {
    if (value >= threshold) value = static_cast<std::uint8_t>(255 - value);
  }
}

void warp(PixelView source, const AffineMap& map, std::span<std::uint8_t> out) {
  std::uint8_t* to = out.data();
  for (std::int64_t y = 0; y < source.height; ++y) {
    for (std::int64_t x = 0; x < source.width; ++x, to += 3) {
      const double centre_x = static_cast<double>(x) + 0.5, centre_y = static_cast<double>(y) + 0.5;
      double from_x = map[0] * centre_x + map[1] * centre_y + map[2];
      double from_y = map[3] * centre_x + map[4] * centre_y + map[5];
      if (!(from_x >= 0 && from_x < static_cast<double>(source.width) && from_y >= 0 &&
            from_y < static_cast<double>(source.height))) {
        to[0] = to[1] = to[2] = 0;
        continue;
      }
      from_x -= 0.5;
      from_y -= 0.5;
      const auto left = static_cast<std::int64_t>(std::floor(from_x));
      const auto top = static_cast<std::int64_t>(std::floor(from_y));
      const double right_share = from_x - static_cast<double>(left);
      const double lower_share = from_y - static_cast<double>(top);
      // Beyond the border its own pixels go on.
      const std::int64_t x0 = std::max<std::int64_t>(left, 0);
      const std::int64_t x1 = std::min(left + 1, source.width - 1);
      const std::int64_t y0 = std::max<std::int64_t>(top, 0);
      const std::int64_t y1 = std::min(top + 1, source.height - 1);
      for (int c = 0; c < 3; ++c) {
        const auto across = [&](std::int64_t row) {
          const std::uint8_t* pixels = source.pixels + row * source.stride + c;
          return pixels[x0 * 3] + (pixels[x1 * 3] - pixels[x0 * 3]) * right_share;
        };
        const double upper = across(y0), lower = across(y1);
        to[c] = static_cast<std::uint8_t>(upper + (lower - upper) * lower_share);
      }
    }
  }
}

AffineMap rotation(int degrees, std::int64_t height, std::int64_t width) {
  const double angle = -degrees * std::numbers::pi / 180;
  const double cosine = rounded(std::cos(angle)), sine = rounded(std::sin(angle));
  const double x = static_cast<double>(width) / 2, y = static_cast<double>(height) / 2;
  return {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y};
}

void AugMixAugment::change(AugMixChange which, Random& random, TransformScratch& scratch) const {
  const auto move_by = [&](const AffineMap& map) {
    scratch.warped.resize(scratch.varied.size());
    warp({scratch.varied.data(), size(), size(), size() * 3}, map, scratch.warped);
    scratch.varied.swap(scratch.warped);
  };
  const double third = static_cast<double>(size()) / 3;
  switch (which) {
    case AugMixChange::kAutocontrast:
      return stretch_contrast(scratch.varied);
    case AugMixChange::kEqualize:
      return equalize_histogram(scratch.varied);
    case AugMixChange::kPosterize:
      return posterize(scratch.varied, 4 - static_cast<int>(draw_level(random, 4)));
    case AugMixChange::kSolarize:
      return solarize(scratch.varied, 256 - static_cast<int>(draw_level(random, 256)));
    case AugMixChange::kRotate: {
      const double degrees = std::floor(draw_level(random, 30)) * draw_sign(random);
      if (degrees == 0) return;
      return move_by(rotation(static_cast<int>(degrees), size(), size()));
    }
    case AugMixChange::kShearX: {
      const double share = draw_level(random, 0.3);
      return move_by({1, share * draw_sign(random), 0, 0, 1, 0});
    }
    case AugMixChange::kShearY: {
      const double share = draw_level(random, 0.3);
      return move_by({1, 0, 0, share * draw_sign(random), 1, 0});
    }
    case AugMixChange::kTranslateX: {
      const double distance = std::floor(draw_level(random, third));
      return move_by({1, 0, distance * draw_sign(random), 0, 1, 0});
    }
    case AugMixChange::kTranslateY: {
      const double distance = std::floor(draw_level(random, third));
      return move_by({1, 0, 0, 0, 1, distance * draw_sign(random)});
    }
  }
}

void AugMixAugment::apply(const Image& image, std::uint64_t step, std::uint64_t slot,
                          TransformScratch& scratch, float* out) const {
  crop(image, step, view_size_ > 0 ? slot % view_size_ : slot, scratch);
  normalize(scratch.pixels, out);
  if (slot < view_size_) return;

  Random random(seed(), "augmix", {step, slot});
  const auto weights = draw_weights(random);
  const double mixed = random.uniform();
  const std::size_t count = scratch.pixels.size();
  const auto kept = static_cast<float>(1 - mixed);
  for (std::size_t i = 0; i < count; ++i) out[i] *= kept;
  scratch.planes.resize(count);
  for (const double weight : weights) {
    scratch.varied = scratch.pixels;
    const auto depth = 1 + random.below(kDeepest);
    for (std::uint64_t i = 0; i < depth; ++i) {
      constexpr std::uint64_t kChanges = static_cast<std::uint64_t>(AugMixChange::kTranslateY) + 1;
      change(static_cast<AugMixChange>(random.below(kChanges)), random, scratch);
    }
    normalize(scratch.varied, scratch.planes.data());
    const auto share = static_cast<float>(mixed * weight);
    for (std::size_t i = 0; i < count; ++i) out[i] += share * scratch.planes[i];
  }
}

}  // namespace gala
