#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// Frosted glass: blur, let pixels take the place of near ones, blur again. The published code
/// means to swap two pixels, but swaps views of one array: the first takes the second's value and
/// the second keeps it. That is what made the published data, so it is done here.
class GlassBlur final : public CorruptionEffect {
 public:
  GlassBlur(int side, double sigma, int reach, int rounds)
      : side_(side), filter_(sigma), reach_(reach), rounds_(rounds) {}

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    Colours image(side_);
    read_colours(input, image);
    filter_.apply<Border::kReplicate>(image);
    for (auto& pixel : image) {
      for (float& value : pixel.lane) value = to_level(value);
    }
    for (int round = 0; round < rounds_; ++round) {
      for (int y = side_ - reach_; y > reach_; --y) displace_row(random, y, image);
    }
    filter_.apply<Border::kReplicate>(image);
    write_levels(image, output);
  }

 private:
  /// Each offset is one of -reach .. reach - 1: the published bounds leave out the upper end.
  void displace_row(Random& random, int y, Colours& image) const {
    Pixel* row = &image[y * side_];
    if (reach_ == 1) {
      std::uint64_t bits = 0;  // two for each of 32 pixels
      for (int x = side_ - 1, left = 0; x > 1; --x, --left, bits >>= 2) {
        if (left == 0) bits = random.next(), left = 32;
        const int up = static_cast<int>(bits & 1), before = static_cast<int>(bits >> 1 & 1);
        row[x] = image[(y - up) * side_ + x - before];
      }
      return;
    }
    const auto choices = static_cast<std::uint64_t>(2 * reach_);
    for (int x = side_ - reach_; x > reach_; --x) {
      const std::uint64_t word = random.next();
      const int dx = static_cast<int>((word & 0xffffffffu) * choices >> 32) - reach_;
      const int dy = static_cast<int>((word >> 32) * choices >> 32) - reach_;
      row[x] = image[(y + dy) * side_ + x + dx];
    }
  }

  int side_;
  GaussianFilter filter_;
  int reach_, rounds_;
};

}  // namespace

EffectPointer make_glass_blur(CorruptionSet set, int severity) {
  constexpr double kSigma[][kSeverities] = {{0.05, 0.25, 0.4, 0.25, 0.4}, {0.7, 0.9, 1, 1.1, 1.5}};
  constexpr int kReach[][kSeverities] = {{1, 1, 1, 1, 1}, {1, 2, 2, 3, 4}};
  constexpr int kRounds[][kSeverities] = {{1, 1, 1, 2, 2}, {2, 1, 3, 2, 2}};
  return std::make_unique<GlassBlur>(side_of(set), constant_of(kSigma, set, severity),
                                     constant_of(kReach, set, severity),
                                     constant_of(kRounds, set, severity));
}

}  // namespace gala
