#include <algorithm>
#include <vector>

#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// The mean of the image and of its enlargements by 1, 1 + step, ...
class ZoomBlur final : public CorruptionEffect {
 public:
  ZoomBlur(int side, int terms, double step) : side_(side) {
    const float weight = 1.0f / static_cast<float>(terms + 1);
    for (int i = 0; i < terms; ++i) {
      const ClippedZoom zoom(side, 1 + i * step, weight);
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
    Colours image(side_), sum(side_);
    read_colours(input, image);
    for (const auto& zoom : zooms_) zoom.add_to(image, sum);
    write_levels(sum, output);
  }

 private:
  int side_;
  std::vector<ClippedZoom> zooms_;
};

}  // namespace

EffectPointer make_zoom_blur(CorruptionSet set, int severity) {
  // The published lists are numpy.arange(1, end, step), of which rounding decides whether they hold
  // their end, and which count in steps of (1 + step) - 1: that decides how a half pixel is rounded.
  constexpr int kTerms[][kSeverities] = {{7, 12, 16, 21, 26}, {12, 16, 11, 13, 11}};
  constexpr double kSecond[][kSeverities] = {{1.01, 1.01, 1.01, 1.01, 1.01},
                                             {1.01, 1.01, 1.02, 1.02, 1.03}};
  return std::make_unique<ZoomBlur>(side_of(set), constant_of(kTerms, set, severity),
                                    constant_of(kSecond, set, severity) - 1);
}

}  // namespace gala
