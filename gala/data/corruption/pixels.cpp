#include "gala/data/corruption/pixels.h"

namespace gala {

GaussianFilter::GaussianFilter(double sigma, double truncate) {
  const int radius = static_cast<int>(truncate * sigma + 0.5);
  std::vector<double> weights{1.0};
  double sum = 1;
  for (int k = 1; k <= radius; ++k) {
    weights.push_back(std::exp(-0.5 * k * k / (sigma * sigma)));
    sum += 2 * weights.back();
  }
  for (double weight : weights) weights_.push_back(static_cast<float>(weight / sum));
}

MotionFilter::MotionFilter(int radius, double sigma) {
  const int width = 2 * radius + 1;
  std::vector<double> weights;
  double sum = 0;
  for (int i = 0; i < width; ++i) {
    weights.push_back(std::exp(-0.5 * i * i / (sigma * sigma)));
    sum += weights.back();
  }
  for (double weight : weights) {
    // Taps this light cannot move a level.
    if (weight / sum > 1e-6) weights_.push_back(static_cast<float>(weight / sum));
  }
}

namespace {

/// ImageMagick rounds to 65535 steps and cuts those to whole levels of 257 steps.
float cut(float value) {
  return static_cast<float>(static_cast<int>(value + 0.5f / 257));
}

}  // namespace

void MotionFilter::cut_to_whole(Colours& image) {
  for (auto& pixel : image) {
    for (float& value : pixel.lane) value = cut(value);
  }
}

void MotionFilter::cut_to_whole(Plane& image) {
  for (float& value : image) value = cut(value);
}

ClippedZoom::ClippedZoom(int side, double factor, float weight) : weight_(weight) {
  crop_size_ = static_cast<int>(std::ceil(side / factor));
  crop_begin_ = (side - crop_size_) / 2;
  zoomed_size_ = static_cast<int>(std::nearbyint(crop_size_ * factor));
  const int trim = (zoomed_size_ - side) / 2;
  for (int i = 0; i < side; ++i) {
    const double position = static_cast<double>(i + trim) * (crop_size_ - 1) / (zoomed_size_ - 1);
    const int whole = std::min(static_cast<int>(position), crop_size_ - 1);
    taps_.push_back({crop_begin_ + whole, crop_begin_ + std::min(whole + 1, crop_size_ - 1),
                     static_cast<float>(position - whole)});
  }
}

}  // namespace gala
