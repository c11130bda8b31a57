// Noise on single values: Gaussian, shot (Poisson), impulse (salt and pepper), speckle.
#include <array>
#include <cmath>
#include <vector>

#include "gala/data/corruption/effect.h"
#include "gala/data/corruption/normal.h"
#include "gala/data/corruption/pixels.h"

namespace gala {
namespace {

/// x + sd * N(0, 1)
class GaussianNoise final : public CorruptionEffect {
 public:
  GaussianNoise(int side, double deviation)
      : values_(3 * side * side), deviation_(static_cast<float>(deviation * 255)) {}
  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    for (int i = 0; i < values_; ++i) {
      output[i] = to_level(input[i] + deviation_ * normal_(random));
    }
  }

 private:
  int values_;
  float deviation_;
  NormalSampler normal_;
};

/// x + x * sd * N(0, 1)
class SpeckleNoise final : public CorruptionEffect {
 public:
  SpeckleNoise(int side, double deviation)
      : values_(3 * side * side), deviation_(static_cast<float>(deviation)) {}
  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    for (int i = 0; i < values_; ++i) {
      output[i] = to_level(input[i] * (1 + deviation_ * normal_(random)));
    }
  }

 private:
  int values_;
  float deviation_;
  NormalSampler normal_;
};

/// Poisson(photons * x) / photons. There are only 256 means, so each has a table of its cumulative
/// probabilities (in units of 2^-32), entered at a place that a coarse guide gives.
class ShotNoise final : public CorruptionEffect {
 public:
  ShotNoise(int side, double photons) : values_(3 * side * side) {
    for (int level = 0; level < 256; ++level) add_table(level / 255.0 * photons, level);
    for (std::size_t k = 0; k < most_; ++k) {
      levels_.push_back(
          static_cast<std::uint8_t>(std::min(static_cast<double>(k) / photons, 1.0) * 255));
    }
  }

  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    for (int i = 0; i < values_; i += 2) {
      const std::uint64_t word = random.next();
      output[i] = draw(static_cast<std::uint32_t>(word), input[i]);
      output[i + 1] = draw(static_cast<std::uint32_t>(word >> 32), input[i + 1]);
    }
  }

 private:
  static constexpr int kGuideBits = 7;

  std::uint8_t draw(std::uint32_t probability, std::uint8_t level) const {
    std::size_t place = guides_[level][probability >> (32 - kGuideBits)];
    while (probability > cumulative_[place]) ++place;
    return levels_[place - begins_[level]];
  }

  void add_table(double mean, int level) {
    const auto counts = static_cast<std::size_t>(mean + 9 * std::sqrt(mean) + 20);
    most_ = std::max(most_, counts);
    begins_[level] = cumulative_.size();
    double sum = 0;
    for (std::size_t k = 0; k + 1 < counts; ++k) {
      const auto count = static_cast<double>(k);
      if (mean > 0) sum += std::exp(count * std::log(mean) - mean - std::lgamma(count + 1));
      const double share = mean > 0 ? std::min(sum, 1.0) : 1.0;
      cumulative_.push_back(static_cast<std::uint32_t>(share * 4294967295.0));
    }
    cumulative_.push_back(0xffffffffu);  // every draw ends here at the latest
    std::size_t place = begins_[level];
    for (std::uint32_t i = 0; i < guides_[level].size(); ++i) {
      while (i << (32 - kGuideBits) > cumulative_[place]) ++place;
      guides_[level][i] = static_cast<std::uint32_t>(place);
    }
  }

  int values_;
  std::vector<std::uint32_t> cumulative_;  // one table after the other
  std::array<std::size_t, 256> begins_;
  std::array<std::array<std::uint32_t, 1 << kGuideBits>, 256> guides_;
  std::vector<std::uint8_t> levels_;  // of a count
  std::size_t most_ = 0;
};

/// Each value becomes 0 or 255 with probability p / 2 each.
class ImpulseNoise final : public CorruptionEffect {
 public:
  ImpulseNoise(int side, double probability)
      : values_(3 * side * side), probability_(probability), half_(probability / 2) {}
  void apply(Random& random, const std::uint8_t* input, std::uint8_t* output) const override {
    for (int i = 0; i < values_; ++i) {
      const double draw = random.uniform();
      output[i] = draw >= probability_ ? input[i] : draw < half_ ? 0 : 255;
    }
  }

 private:
  int values_;
  double probability_, half_;
};

}  // namespace

EffectPointer make_gaussian_noise(CorruptionSet set, int severity) {
  constexpr double kDeviation[][kSeverities] = {{0.04, 0.06, 0.08, 0.09, 0.10},
                                                {0.08, 0.12, 0.18, 0.26, 0.38}};
  return std::make_unique<GaussianNoise>(side_of(set), constant_of(kDeviation, set, severity));
}

EffectPointer make_speckle_noise(CorruptionSet set, int severity) {
  constexpr double kDeviation[][kSeverities] = {{0.06, 0.1, 0.12, 0.16, 0.2},
                                                {0.15, 0.2, 0.35, 0.45, 0.6}};
  return std::make_unique<SpeckleNoise>(side_of(set), constant_of(kDeviation, set, severity));
}

EffectPointer make_shot_noise(CorruptionSet set, int severity) {
  constexpr double kPhotons[][kSeverities] = {{500, 250, 100, 75, 50}, {60, 25, 12, 5, 3}};
  return std::make_unique<ShotNoise>(side_of(set), constant_of(kPhotons, set, severity));
}

EffectPointer make_impulse_noise(CorruptionSet set, int severity) {
  constexpr double kProbability[][kSeverities] = {{0.01, 0.02, 0.03, 0.05, 0.07},
                                                  {0.03, 0.06, 0.09, 0.17, 0.27}};
  return std::make_unique<ImpulseNoise>(side_of(set), constant_of(kProbability, set, severity));
}

}  // namespace gala
