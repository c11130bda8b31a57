// Compiled apart: without errno from square roots and without fused products, see CMakeLists.txt.
#include "gala/view/cpu_augment.h"

#include <algorithm>
#include <cstring>

namespace gala {
namespace {

/// Pixels that are worked on at a time, colour by colour: they stay in the first-level cache.
constexpr std::int64_t kBlock = 512;
struct Block {
  alignas(64) float red[kBlock], green[kBlock], blue[kBlock];

  GALA_INLINE Rgb get(std::int64_t i) const { return {red[i], green[i], blue[i]}; }
  GALA_INLINE void set(std::int64_t i, const Rgb& pixel) {
    red[i] = pixel.red;
    green[i] = pixel.green;
    blue[i] = pixel.blue;
  }
};

/// Numbers of a pixel in the pictures between the steps: three colours and nothing, so that four are
/// taken at once.
constexpr std::int64_t kPacked = 4;

GALA_INLINE void read_block(const AugmentTask& task, const float* image, std::int64_t begin,
                            std::int64_t size, Block& block) {
  float* colours[] = {block.red, block.green, block.blue};
  for (int c = 0; c < 3; ++c) {
    const float* values = image + task.channel[c] * task.channel_step + begin * task.pixel_step;
    const float mean = task.mean[c], std = task.std[c];
    float* to = colours[c];
    if (task.pixel_step == 1) {
      for (std::int64_t i = 0; i < size; ++i) to[i] = clipped(values[i] * std + mean);
    } else {
      for (std::int64_t i = 0; i < size; ++i) to[i] = clipped(values[i * 3] * std + mean);
    }
  }
}

/// The turn of a constant `kTurn`: a loop without branches.
template <ColourTurn kTurn>
GALA_INLINE void turn_pixels(const AugmentNumbers& drawn, float mean_grey, std::int64_t size,
                             Block& block) {
  for (std::int64_t i = 0; i < size; ++i) {
    block.set(i, turned(block.get(i), kTurn, drawn, mean_grey));
  }
}

GALA_INLINE void turn_block(ColourTurn turn, const AugmentNumbers& drawn, float mean_grey,
                            std::int64_t size, Block& block) {
  switch (turn) {
    case kBrightness:
      return turn_pixels<kBrightness>(drawn, mean_grey, size, block);
    case kContrast:
      return turn_pixels<kContrast>(drawn, mean_grey, size, block);
    case kSaturation:
      return turn_pixels<kSaturation>(drawn, mean_grey, size, block);
    case kHue:
      return turn_pixels<kHue>(drawn, mean_grey, size, block);
    case kGamma:
      return turn_pixels<kGamma>(drawn, mean_grey, size, block);
  }
}

/// Lanes of sums, which are added in the same order everywhere.
struct GreySum {
  static constexpr std::int64_t kLanes = 8;
  double sum[kLanes] = {};

  GALA_INLINE void add(const Block& block, std::int64_t size) {
    std::int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) sum[lane] += grey_of(block.get(i + lane));
    }
    for (; i < size; ++i) sum[i % kLanes] += grey_of(block.get(i));
  }
  double total() const {
    double all = 0;
    for (const double part : sum) all += part;
    return all;
  }
};

/// The new colours, packed, behind room for three planes: those hold the image as it is when contrast's turn
/// comes, which needs the mean of all of it.
GALA_INLINE void colour(const AugmentTask& task, const AugmentNumbers& drawn, const float* image,
                        float* scratch) {
  const std::int64_t pixels = static_cast<std::int64_t>(task.height) * task.width;
  const auto* end = drawn.order + kColourTurns;
  const auto* contrast = std::find(drawn.order, end, kContrast);
  GreySum greys;
  Block block;
  float* planes[] = {scratch, scratch + pixels, scratch + 2 * pixels};
  float* colours[] = {block.red, block.green, block.blue};
  for (std::int64_t begin = 0; begin < pixels; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, pixels - begin);
    read_block(task, image, begin, size, block);
    for (const auto* turn = drawn.order; turn != contrast; ++turn) {
      turn_block(*turn, drawn, 0, size, block);
    }
    greys.add(block, size);
    for (int c = 0; c < 3; ++c) std::copy_n(colours[c], size, planes[c] + begin);
  }
  const auto mean = static_cast<float>(greys.total() / static_cast<double>(pixels));
  float* packed = scratch + 3 * pixels;
  for (std::int64_t begin = 0; begin < pixels; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, pixels - begin);
    for (int c = 0; c < 3; ++c) std::copy_n(planes[c] + begin, size, colours[c]);
    for (const auto* turn = contrast; turn != end; ++turn) {
      turn_block(*turn, drawn, mean, size, block);
    }
    float* to = packed + begin * kPacked;
    for (std::int64_t i = 0; i < size; ++i) {
      to[i * kPacked] = block.red[i];
      to[i * kPacked + 1] = block.green[i];
      to[i * kPacked + 2] = block.blue[i];
      to[i * kPacked + 3] = 0;
    }
  }
}

/// A packed pixel as GCC and Clang take it at once.
using Pixel __attribute__((vector_size(kPacked * sizeof(float)))) = float;

GALA_INLINE Pixel pixel_at(const float* picture, std::int32_t pixel) {
  Pixel result;
  std::memcpy(&result, picture + pixel * kPacked, sizeof result);
  return result;
}

GALA_INLINE void sample(const Taps* taps, std::int64_t places, const float* picture,
                        float* result) {
  for (std::int64_t i = 0; i < places; ++i) {
    const Taps& from = taps[i];
    const Pixel sum = pixel_at(picture, from.pixel[0]) * from.weight[0] +
                      pixel_at(picture, from.pixel[1]) * from.weight[1] +
                      pixel_at(picture, from.pixel[2]) * from.weight[2] +
                      pixel_at(picture, from.pixel[3]) * from.weight[3];
    std::memcpy(result + i * kPacked, &sum, sizeof sum);
  }
}

/// Numbers that lie `step` apart, `count` of them.
GALA_INLINE void blur_along(const float (&weight)[3], const float* from, std::int64_t step,
                            std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = blurred(weight, from[i], from[i + step], from[i + 2 * step], from[i + 3 * step],
                    from[i + 4 * step]);
  }
}

/// Noise, clip and preprocessing of pixels in a row, the first of which is the batch's `index`-th.
GALA_INLINE void finish(const AugmentTask& task, const AugmentNumbers& drawn, std::uint32_t index,
                        const float* packed, std::int64_t size, Block& noise, float* output) {
  if (task.noise > 0) {
    for (std::int64_t i = 0; i < size; ++i) {
      noise.set(i, noise_at(drawn, index + static_cast<std::uint32_t>(i)));
    }
  }
  const float* colours[] = {noise.red, noise.green, noise.blue};
  for (int c = 0; c < 3; ++c) {
    float* to = output + task.channel[c] * task.channel_step;
    const float mean = task.mean[c], std = task.std[c];
    const float* values = packed + c;
    const float* added = colours[c];
    if (task.pixel_step == 1) {
      for (std::int64_t i = 0; i < size; ++i) {
        to[i] = (clipped(values[i * kPacked] + task.noise * added[i]) - mean) / std;
      }
    } else {
      for (std::int64_t i = 0; i < size; ++i) {
        to[i * 3] = (clipped(values[i * kPacked] + task.noise * added[i]) - mean) / std;
      }
    }
  }
}

GALA_INLINE void make(const AugmentTask& task, const AugmentNumbers& drawn, const Taps* taps,
                      std::int64_t places, std::int64_t image, const float* input, float* output,
                      float* scratch) {
  const std::int64_t height = task.height, width = task.width, pixels = height * width;
  colour(task, drawn, input, scratch);
  const float* picture = scratch + 3 * pixels;
  float* sampled = scratch + (3 + kPacked) * pixels;
  sample(taps, places, picture, sampled);
  if (task.blur) {
    const std::int64_t wide = width + 2 * kBlurReach, tall = height + 2 * kBlurReach;
    float* across = sampled + places * kPacked;
    for (std::int64_t row = 0; row < tall; ++row) {
      blur_along(drawn.blur, sampled + row * wide * kPacked, kPacked, width * kPacked,
                 across + row * width * kPacked);
    }
    blur_along(drawn.blur, across, width * kPacked, pixels * kPacked, sampled);
  }
  Block noise{};
  const auto first = static_cast<std::uint32_t>(image * pixels);
  for (std::int64_t begin = 0; begin < pixels; begin += kBlock) {
    finish(task, drawn, first + static_cast<std::uint32_t>(begin), sampled + begin * kPacked,
           std::min(kBlock, pixels - begin), noise, output + begin * task.pixel_step);
  }
}

#if GALA_CPU_LEVELS
__attribute__((target("avx2"))) void make_avx2(const AugmentTask& task, const AugmentNumbers& drawn,
                                               const Taps* taps, std::int64_t places,
                                               std::int64_t image, const float* input,
                                               float* output, float* scratch) {
  make(task, drawn, taps, places, image, input, output, scratch);
}
#endif

}  // namespace

CpuAugment::CpuAugment(const AugmentTask& task, const AugmentNumbers& drawn)
    : task_(task),
      drawn_(drawn),
      reach_(task.blur ? kBlurReach : 0),
      rows_(task.height + 2 * reach_),
      columns_(task.width + 2 * reach_),
      taps_(static_cast<std::size_t>(rows_ * columns_)) {}

void CpuAugment::place_rows(std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    Taps* taps = taps_.data() + row * columns_;
    for (std::int64_t column = 0; column < columns_; ++column) {
      taps[column] = taps_at(task_, drawn_, static_cast<std::int32_t>(row) - reach_,
                             static_cast<std::int32_t>(column) - reach_);
    }
  }
}

std::vector<float> CpuAugment::make_scratch() const {
  // Three colours one by one, the picture of them packed, where its pixels went, and half a blur.
  const std::int64_t pixels = static_cast<std::int64_t>(task_.height) * task_.width;
  const std::int64_t half_blurred = task_.blur ? rows_ * task_.width : 0;
  const std::int64_t packed = pixels + rows_ * columns_ + half_blurred;
  return std::vector<float>(static_cast<std::size_t>(3 * pixels + packed * kPacked));
}

void CpuAugment::make_image(std::int64_t image, const float* input, float* output,
                            float* scratch) const {
  const auto places = static_cast<std::int64_t>(taps_.size());
#if GALA_CPU_LEVELS
  if (__builtin_cpu_supports("avx2")) {
    return make_avx2(task_, drawn_, taps_.data(), places, image, input, output, scratch);
  }
#endif
  make(task_, drawn_, taps_.data(), places, image, input, output, scratch);
}

}  // namespace gala
