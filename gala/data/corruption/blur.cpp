// Blurs with a fixed kernel: Gaussian and out of focus.
#include <array>
#include <cmath>

#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

class GaussianBlur final : public CorruptionEffect {
 public:
  explicit GaussianBlur(double sigma) : filter_(sigma) {}
  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    Colours image;
    read_colours(input, image);
    filter_.apply<Border::kReplicate>(image);
    write_levels(image, output);
  }

 private:
  GaussianFilter filter_;
};

/// A disk whose rim is softened by a 3x3 Gaussian. Radii are below 2, so 5x5 taps hold the kernel.
class DefocusBlur final : public CorruptionEffect {
 public:
  DefocusBlur(double radius, double softness) {
    constexpr int kReach = 1;
    std::array<std::array<double, 3>, 3> disk{};
    double area = 0;
    for (int y = -kReach; y <= kReach; ++y) {
      for (int x = -kReach; x <= kReach; ++x) {
        disk[y + kReach][x + kReach] = x * x + y * y <= radius * radius ? 1 : 0;
        area += disk[y + kReach][x + kReach];
      }
    }
    const double side = std::exp(-0.5 / (softness * softness)), sum = 1 + 2 * side;
    const std::array<double, 3> soft{side / sum, 1 / sum, side / sum};
    for (int y = 0; y < kTaps; ++y) {
      for (int x = 0; x < kTaps; ++x) {
        double weight = 0;
        for (int v = 0; v < 3; ++v) {
          for (int u = 0; u < 3; ++u) {
            const int disk_y = y - v, disk_x = x - u;
            if (disk_y < 0 || disk_y > 2 || disk_x < 0 || disk_x > 2) continue;
            weight += soft[v] * soft[u] * disk[disk_y][disk_x] / area;
          }
        }
        kernel_[y][x] = weight;
      }
    }
  }

  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    // In double: at severity 4 every fifth sum is a whole level but for 1e-4 of what lies around
    // it.
    constexpr int kReach = kTaps / 2, kWide = kSide + 2 * kReach, kRow = 3 * kSide;
    std::array<double, 3 * kWide * kWide> bordered;
    for (int y = 0; y < kWide; ++y) {
      const std::uint8_t* in = &input[border_index<Border::kReflect101>(y - kReach) * kRow];
      for (int x = 0; x < kWide; ++x) {
        const std::uint8_t* pixel = &in[3 * border_index<Border::kReflect101>(x - kReach)];
        for (int c = 0; c < 3; ++c) bordered[3 * (y * kWide + x) + c] = pixel[c];
      }
    }
    for (int y = 0; y < kSide; ++y) {
      double sum[kRow] = {};
      for (int ky = 0; ky < kTaps; ++ky) {
        for (int kx = 0; kx < kTaps; ++kx) {
          const double weight = kernel_[ky][kx];
          if (weight < 1e-8) continue;
          const double* in = &bordered[3 * ((y + ky) * kWide + kx)];
          for (int i = 0; i < kRow; ++i) sum[i] += weight * in[i];
        }
      }
      for (int i = 0; i < kRow; ++i) {
        output[y * kRow + i] = static_cast<std::uint8_t>(std::min(sum[i] + 1e-6, 255.0));
      }
    }
  }

 private:
  static constexpr int kTaps = 5;
  std::array<std::array<double, kTaps>, kTaps> kernel_;
};

}  // namespace

EffectPointer make_gaussian_blur(int severity) {
  constexpr double kSigma[] = {0.4, 0.6, 0.7, 0.8, 1};
  return std::make_unique<GaussianBlur>(kSigma[severity - 1]);
}

EffectPointer make_defocus_blur(int severity) {
  constexpr double kRadius[] = {0.3, 0.4, 0.5, 1, 1.5};
  constexpr double kSoftness[] = {0.4, 0.5, 0.6, 0.2, 0.1};
  return std::make_unique<DefocusBlur>(kRadius[severity - 1], kSoftness[severity - 1]);
}

}  // namespace gala
