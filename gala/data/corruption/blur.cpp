// Blurs with a fixed kernel: Gaussian and out of focus.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

class GaussianBlur final : public CorruptionEffect {
 public:
  GaussianBlur(int side, double sigma) : side_(side), filter_(sigma) {}
  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    Colours image(side_);
    read_colours(input, image);
    filter_.apply<Border::kReplicate>(image);
    write_levels(image, output);
  }

 private:
  int side_;
  GaussianFilter filter_;
};

/// A disk whose rim is softened by a small Gaussian, as OpenCV does it: in an array of 17x17 (or just
/// as large as a wider disk), beyond whose border the disk is mirrored. Where the disk touches that border
/// its sum is not 1: ImageNet-C's two strongest make pictures brighter by 1.3 and 1.1 %.
std::vector<double> soft_disk(int reach, double radius, double softness) {
  const int width = 2 * reach + 1, half = radius <= 8 ? 1 : 2;
  std::vector<double> disk(static_cast<std::size_t>(width * width)), kernel(disk.size());
  double area = 0;
  for (int y = -reach; y <= reach; ++y) {
    for (int x = -reach; x <= reach; ++x) {
      const double inside = x * x + y * y <= radius * radius ? 1 : 0;
      disk[static_cast<std::size_t>((y + reach) * width + x + reach)] = inside;
      area += inside;
    }
  }
  std::vector<double> soft;
  double sum = 0;
  for (int k = -half; k <= half; ++k) {
    soft.push_back(std::exp(-0.5 * k * k / (softness * softness)));
    sum += soft.back();
  }
  for (double& weight : soft) weight /= sum;
  for (int y = 0; y < width; ++y) {
    for (int x = 0; x < width; ++x) {
      double weight = 0;
      for (int v = -half; v <= half; ++v) {
        const int row = border_index<Border::kReflect101>(y - v, width) * width;
        for (int u = -half; u <= half; ++u) {
          const int column = border_index<Border::kReflect101>(x - u, width);
          weight += soft[static_cast<std::size_t>(v + half)] *
                    soft[static_cast<std::size_t>(u + half)] *
                    disk[static_cast<std::size_t>(row + column)] / area;
        }
      }
      kernel[static_cast<std::size_t>(y * width + x)] = weight;
    }
  }
  return kernel;
}

class DefocusBlur final : public CorruptionEffect {
 public:
  DefocusBlur(int side, double radius, double softness) : side_(side) {
    const int reach = radius <= 8 ? 8 : static_cast<int>(radius);
    const int width = 2 * reach + 1;
    const std::vector<double> kernel = soft_disk(reach, radius, softness);
    const auto at = [&](int dy, int x) {
      return kernel[static_cast<std::size_t>((dy + reach) * width + x)];
    };
    for (int dy = 0; dy <= reach; ++dy) {
      for (int x = 0; x < width;) {
        const double weight = at(dy, x);
        const int first = x;
        while (x < width && alike(at(dy, x), weight)) ++x;
        if (weight < 1e-8) continue;
        add_run(weight, {dy, first - reach, x - first});
        reach_ = std::max({reach_, reach - first, x - 1 - reach, dy});
      }
    }
  }

  void apply(Random&, const std::uint8_t* input, std::uint8_t* output) const override {
    const int values = 3 * side_, line = 3 * (side_ + 2 * reach_ + 1);
    const std::vector<std::int32_t> sums = sum_up(input, line);
    // Of the kernel's row dy and its mirror -dy together.
    std::vector<std::int32_t> pairs(static_cast<std::size_t>((reach_ + 1) * line));
    std::vector<std::int32_t> alike_total(static_cast<std::size_t>(values));
    std::vector<double> total(static_cast<std::size_t>(values));
    for (int y = 0; y < side_; ++y) {
      for (int dy = 0; dy <= reach_; ++dy) {
        const std::int32_t* below = &sums[static_cast<std::size_t>((y + reach_ + dy) * line)];
        const std::int32_t* above = &sums[static_cast<std::size_t>((y + reach_ - dy) * line)];
        std::int32_t* pair = &pairs[static_cast<std::size_t>(dy * line)];
        for (int i = 0; i < line; ++i) pair[i] = dy == 0 ? below[i] : below[i] + above[i];
      }
      // In double: at CIFAR's severity 4 every fifth sum is a whole level but for 1e-4 of what lies
      // around it. The hair keeps flat areas at their level.
      std::fill(total.begin(), total.end(), 1e-6);
      for (const Weight& weight : weights_) {
        std::int32_t* const sum = alike_total.data();
        std::fill(alike_total.begin(), alike_total.end(), 0);
        for (const Run& run : weight.runs) {
          const std::int32_t* before =
              &pairs[static_cast<std::size_t>(run.dy * line + 3 * (run.dx + reach_))];
          const std::int32_t* after = before + 3 * run.length;
          for (int i = 0; i < values; ++i) sum[i] += after[i] - before[i];
        }
        double* const out = total.data();
        for (int i = 0; i < values; ++i) out[i] += weight.value * sum[i];
      }
      for (int i = 0; i < values; ++i) {
        output[y * values + i] =
            static_cast<std::uint8_t>(std::min(total[static_cast<std::size_t>(i)], 255.0));
      }
    }
  }

 private:
  /// Neighbours in a row of the kernel with one weight, the first `dx` from its centre.
  struct Run {
    int dy, dx, length;
  };
  struct Weight {
    double value;
    std::vector<Run> runs;
  };

  static bool alike(double a, double b) { return std::abs(a - b) < 1e-12; }

  void add_run(double weight, const Run& run) {
    for (Weight& known : weights_) {
      if (alike(known.value, weight)) return known.runs.push_back(run);
    }
    weights_.push_back({weight, {run}});
  }

  /// Levels summed up along each row of the picture and its border, so that a run costs one difference.
  std::vector<std::int32_t> sum_up(const std::uint8_t* input, int line) const {
    const int rows = side_ + 2 * reach_;
    std::vector<std::int32_t> sums(static_cast<std::size_t>(rows * line));
    for (int y = 0; y < rows; ++y) {
      const std::uint8_t* in =
          &input[border_index<Border::kReflect101>(y - reach_, side_) * 3 * side_];
      std::int32_t* out = &sums[static_cast<std::size_t>(y * line)];
      for (int x = 0; x < rows; ++x) {
        const std::uint8_t* pixel = &in[3 * border_index<Border::kReflect101>(x - reach_, side_)];
        for (int c = 0; c < 3; ++c) out[3 * (x + 1) + c] = out[3 * x + c] + pixel[c];
      }
    }
    return sums;
  }

  int side_;
  int reach_ = 0;  ///< how far from its centre the kernel has weights
  std::vector<Weight> weights_;
};

}  // namespace

EffectPointer make_gaussian_blur(CorruptionSet set, int severity) {
  constexpr double kSigma[][kSeverities] = {{0.4, 0.6, 0.7, 0.8, 1}, {1, 2, 3, 4, 6}};
  return std::make_unique<GaussianBlur>(side_of(set), constant_of(kSigma, set, severity));
}

EffectPointer make_defocus_blur(CorruptionSet set, int severity) {
  constexpr double kRadius[][kSeverities] = {{0.3, 0.4, 0.5, 1, 1.5}, {3, 4, 6, 8, 10}};
  constexpr double kSoftness[][kSeverities] = {{0.4, 0.5, 0.6, 0.2, 0.1},
                                               {0.1, 0.5, 0.5, 0.5, 0.5}};
  return std::make_unique<DefocusBlur>(side_of(set), constant_of(kRadius, set, severity),
                                       constant_of(kSoftness, set, severity));
}

}  // namespace gala
