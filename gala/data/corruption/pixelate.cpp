#include <vector>

#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// The source pixels, first to last, that a result pixel is the mean of.
struct BoxTap {
  int first, last;
};

/// PIL's box filter: a source pixel counts whole when its centre lies within half a result pixel of
/// the result's centre, else not at all.
std::vector<BoxTap> box_taps(int from, int to) {
  const double scale = static_cast<double>(from) / to, reach = 0.5 * std::max(scale, 1.0);
  std::vector<BoxTap> taps;
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    BoxTap tap{-1, -1};
    for (int k = 0; k < from; ++k) {
      const double distance = k + 0.5 - centre;
      if (distance <= -reach || distance > reach) continue;
      if (tap.first < 0) tap.first = k;
      tap.last = k;
    }
    taps.push_back(tap);
  }
  return taps;
}

/// Averages rounded to whole levels along one axis. `step` is the distance of neighbours along it,
/// `across` that of the lines, in pixels.
void resize(const std::vector<BoxTap>& taps, int lines, int in_step, int in_across, int out_step,
            int out_across, const std::uint8_t* input, std::uint8_t* output) {
  for (int line = 0; line < lines; ++line) {
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const auto [first, last] = taps[i];
      const int count = last - first + 1;
      std::uint8_t* out = &output[3 * (line * out_across + static_cast<int>(i) * out_step)];
      for (int c = 0; c < 3; ++c) {
        int sum = 0;
        for (int k = first; k <= last; ++k) sum += input[3 * (line * in_across + k * in_step) + c];
        out[c] = static_cast<std::uint8_t>((2 * sum + count) / (2 * count));
      }
    }
  }
}

/// Fewer pixels, then as many as before; rows first, then columns, as PIL does both times.
class Pixelate final : public CorruptionEffect {
 public:
  Pixelate(int side, int small)
      : side_(side), small_(small), down_(box_taps(side, small)), up_(box_taps(small, side)) {}

  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    std::vector<std::uint8_t> wide(static_cast<std::size_t>(3 * side_ * side_)), small(wide.size());
    resize(down_, side_, 1, side_, 1, small_, input, wide.data());
    resize(down_, small_, small_, 1, small_, 1, wide.data(), small.data());
    resize(up_, small_, 1, small_, 1, side_, small.data(), wide.data());
    resize(up_, side_, side_, 1, side_, 1, wide.data(), output);
  }

 private:
  int side_, small_;
  std::vector<BoxTap> down_, up_;
};

}  // namespace

EffectPointer make_pixelate(CorruptionSet set, int severity) {
  constexpr int kSmallSide[][kSeverities] = {{30, 28, 27, 24, 20}, {134, 112, 89, 67, 56}};
  return std::make_unique<Pixelate>(side_of(set), constant_of(kSmallSide, set, severity));
}

}  // namespace gala
