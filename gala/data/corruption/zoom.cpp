#include <algorithm>
#include <vector>

#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// The mean of the image and of its enlargements by 1.00, 1.01, ...
class ZoomBlur final : public CorruptionEffect {
 public:
  explicit ZoomBlur(int terms) {
    // The published list counts in steps of 1.01 - 1, a hair above 0.01: that decides how a half
    // pixel at 1.25 is rounded.
    constexpr double kStep = 1.01 - 1;
    const float weight = 1.0f / static_cast<float>(terms + 1);
    for (int i = 0; i < terms; ++i) {
      const ClippedZoom zoom(1 + i * kStep, weight);
      auto same = std::find_if(zooms_.begin(), zooms_.end(),
                               [&](const ClippedZoom& other) { return other.same_pixels(zoom); });
      if (same == zooms_.end()) {
        zooms_.push_back(zoom);
      } else {
        same->add_weight(weight);
      }
    }
    zooms_.front().add_weight(weight);  // the image itself: the first factor is 1
  }
  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    Colours image, sum;
    read_colours(input, image);
    sum.fill({});
    for (const auto& zoom : zooms_) zoom.add_to(image, sum);
    write_levels(sum, output);
  }

 private:
  std::vector<ClippedZoom> zooms_;
};

}  // namespace

EffectPointer make_zoom_blur(int severity) {
  // The published lists end at 1.06, 1.11, 1.15, 1.20 and 1.25: the first two hold their end
  // because of rounding.
  constexpr int kTerms[] = {7, 12, 16, 21, 26};
  return std::make_unique<ZoomBlur>(kTerms[severity - 1]);
}

}  // namespace gala
