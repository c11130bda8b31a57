#include "gala/data/transform.h"

#include "gala/base/error.h"

namespace gala {

PixelView view_of(const Image& image) {
  return {image.pixels.data(), image.height, image.width, image.width * 3};
}

Normalizer::Normalizer(const Preprocessing& preprocessing) {
  const bool reversed = preprocessing.channels == "bgr";
  if (!reversed && preprocessing.channels != "rgb") {
    fail<ConfigError>("preprocessing: channels cannot be \"{}\" (expected rgb|bgr)",
                      preprocessing.channels);
  }
  for (std::size_t c = 0; c < 3; ++c) {
    channel_[c] = static_cast<int>(reversed ? 2 - c : c);
    const auto mean = static_cast<float>(preprocessing.mean[c]);
    const auto std = static_cast<float>(preprocessing.std[c]);
    for (std::size_t level = 0; level < 256; ++level) {
      table_[c][level] = (static_cast<float>(level) / 255.0f - mean) / std;
    }
  }
}

void Normalizer::apply(PixelView source, float* out) const {
  const std::int64_t area = source.height * source.width;
  const float* red = table_[0].data();
  const float* green = table_[1].data();
  const float* blue = table_[2].data();
  for (std::int64_t y = 0; y < source.height; ++y) {
    const std::uint8_t* first = source.pixels + y * source.stride + channel_[0];
    const std::uint8_t* second = source.pixels + y * source.stride + channel_[1];
    const std::uint8_t* third = source.pixels + y * source.stride + channel_[2];
    for (std::int64_t x = 0; x < source.width; ++x, ++out) {
      out[0] = red[first[3 * x]];
      out[area] = green[second[3 * x]];
      out[2 * area] = blue[third[3 * x]];
    }
  }
}

void Normalizer::apply_to_planes(std::span<const std::uint8_t> planes, float* out) const {
  const std::size_t area = planes.size() / 3;
  for (std::size_t c = 0; c < 3; ++c) {
    for (const std::uint8_t level :
         planes.subspan(static_cast<std::size_t>(channel_[c]) * area, area)) {
      *out++ = table_[c][level];
    }
  }
}

PixelTransform::PixelTransform(const Preprocessing& preprocessing)
    : size_(preprocessing.size),
      filter_(parse_filter(preprocessing.interpolation)),
      normalizer_(preprocessing) {
  if (size_ < 1 || size_ > 16384) {
    fail<ConfigError>("preprocessing: size cannot be {} (expected 1 to 16384)", size_);
  }
}

void EvaluationTransform::apply(const Image& image, std::uint64_t, std::uint64_t,
                                TransformScratch& scratch, float* out) const {
  normalize(resized(view_of(image), scratch), out);
}

}  // namespace gala
