#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// Frosted glass: blur, let pixels take the place of near ones, blur again. The published code
/// means to swap two pixels, but swaps views of one array: the first takes the second's value and
/// the second keeps it. That is what made the published data, so it is done here.
class GlassBlur final : public CorruptionEffect {
 public:
  GlassBlur(double sigma, int rounds) : filter_(sigma), rounds_(rounds) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Colours image;
    read_colours(input, image);
    filter_.apply<Border::kReplicate>(image);
    for (auto& pixel : image) {
      for (float& value : pixel.lane) value = to_level(value);
    }
    for (int round = 0; round < rounds_; ++round) {
      for (int y = kSide - 1; y > 1; --y) {
        std::uint64_t bits = random.next();  // two for each of 30 pixels
        for (int x = kSide - 1; x > 1; --x, bits >>= 2) {
          const int up = static_cast<int>(bits & 1), left = static_cast<int>(bits >> 1 & 1);
          image[y * kSide + x] = image[(y - up) * kSide + x - left];
        }
      }
    }
    filter_.apply<Border::kReplicate>(image);
    write_levels(image, output);
  }

 private:
  GaussianFilter filter_;
  int rounds_;
};

}  // namespace

EffectPointer make_glass_blur(int severity) {
  constexpr double kSigma[] = {0.05, 0.25, 0.4, 0.25, 0.4};
  constexpr int kRounds[] = {1, 1, 1, 2, 2};
  return std::make_unique<GlassBlur>(kSigma[severity - 1], kRounds[severity - 1]);
}

}  // namespace gala
