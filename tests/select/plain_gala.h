#pragma once
// GALA's rule in its own words, and that of its control, which asks it.
#include "tests/select/plain_rule.h"

namespace gala {

constexpr double kSame = 1e-10;

class PlainGala : public PlainRule {
 public:
  explicit PlainGala(Random& random)
      : threshold(random.below(3) == 0 ? random.uniform(-1, 1) : 0.75),
        length(static_cast<std::int64_t>(random.below(6))),
        multiple(random.below(3) == 0),
        argmax(random.below(3) == 0),
        ramp(random.below(3) == 0),
        opening_steps(static_cast<std::int64_t>(random.below(4))),
        scale(random.uniform()),
        rate(random.below(2) == 0 ? 0 : random.uniform(0, 2e-3)),
        tie(random.below(3) == 0 ? random.uniform(0, 0.3) : 0) {}
  std::string spec() const override {
    return fmt::format(
        "gala:threshold={},window={},mode={},opening={},opening_ramp={},opening_steps={},"
        "opening_scale={},opening_rate={},tie={}",
        threshold, length, multiple ? "multiple" : "single", argmax ? "argmax" : "all",
        ramp ? "yes" : "no", opening_steps, scale, rate, tie);
  }
  std::int64_t window() const override { return length; }

  std::optional<Numbers> choose(const Scene& scene) override {
    const std::size_t count = scene.sums.size();
    const auto place = static_cast<double>(scene.clock.window_step);
    const bool opening = scene.clock.window_step <= opening_steps;
    if (opening && !argmax) {
      double weight = rate > 0 ? std::min(1.0, rate / scene.rate) : scale;
      if (ramp) weight *= place / (static_cast<double>(opening_steps) + 1);
      return Numbers(count, weight);
    }
    Numbers cosines, weights(count, 0.0);
    for (std::size_t l = 0; l < count; ++l) {
      cosines.push_back(scene.cosine_of(l));
      if (std::abs(cosines[l] - threshold) < kSame) return std::nullopt;
    }
    if (multiple && !opening) {
      for (std::size_t l = 0; l < count; ++l) weights[l] = cosines[l] > threshold ? 1 : 0;
      return weights;
    }
    // The layers that nothing beats, one after the other.
    const double largest = *std::max_element(cosines.begin(), cosines.end());
    std::optional<std::size_t> best;
    for (std::size_t l = 0; l < count; ++l) {
      const double behind = largest - cosines[l];
      if (std::abs(behind - tie) < kSame && tie > 0) return std::nullopt;
      if (behind > tie + kSame) continue;
      // Cosines that are equal but for rounding, of different vectors: nobody's choice is wrong.
      if (tie == 0 && behind > 0 && scene.update[l] != scene.update[index_of(cosines, largest)]) {
        return std::nullopt;
      }
      if (!best || scene.sums[l].update_sq > scene.sums[*best].update_sq) best = l;
    }
    if (opening || cosines[*best] > threshold) weights[*best] = 1;
    return weights;
  }

  double threshold;
  std::int64_t length;
  bool multiple, argmax, ramp;
  std::int64_t opening_steps;
  double scale, rate, tie;

 private:
  static std::size_t index_of(const Numbers& values, double value) {
    return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) -
                                    values.begin());
  }
};

/// Draws, counts and ways of the control, around the plain rule above.
class PlainControl : public PlainRule {
 public:
  PlainControl(Random& random, std::uint64_t seed)
      : gala_(random), draws_(seed, "selector control"), kind_(random.below(3)) {
    gala_.multiple = gala_.argmax = gala_.ramp = false;
    gala_.opening_steps = 1;
    gala_.rate = gala_.tie = 0;
    repeats_ = kind_ == 1 || random.below(2) == 0;
    match_ = random.below(2) == 0;
  }
  std::string spec() const override {
    const char* kinds[] = {"even", "rotation", "frequencies"};
    return fmt::format(
        "control:draw={},repeats={},match={},threshold={},window={},opening_scale={}", kinds[kind_],
        repeats_ ? "yes" : "no", match_ ? "yes" : "no", gala_.threshold, gala_.length, gala_.scale);
  }
  std::int64_t window() const override { return gala_.length; }

  std::optional<Numbers> choose(const Scene& scene) override {
    if (scene.clock.window_step == 1) moved_.clear();
    std::optional<Numbers> weights = gala_.choose(scene);
    if (!weights || scene.clock.window_step == 1) {
      // One layer that moves by all of its update looks like a choice, also when a window opens.
      if (!weights || weights->size() > 1 || weights->front() != 1) return weights;
    }
    const auto chosen = std::find(weights->begin(), weights->end(), 1.0);
    if (chosen == weights->end()) return weights;
    const auto theirs = static_cast<std::size_t>(chosen - weights->begin());
    const std::size_t ours = draw(weights->size());
    ++often_[theirs];
    moved_[ours] = true;
    weights->assign(weights->size(), 0.0);
    (*weights)[ours] = 1;
    if (!match_) return weights;
    const double fade = gala_.length > 0 ? 1 - 1 / static_cast<double>(gala_.length) : 1;
    wanted_ = fade * wanted_ + std::sqrt(scene.sums[theirs].update_sq);
    went_ = fade * went_ + std::sqrt(scene.sums[ours].update_sq);
    if (went_ > 0) (*weights)[ours] = wanted_ / went_;
    return weights;
  }

 private:
  std::size_t draw(std::size_t count) {
    if (kind_ == 1) return turn_++ % count;
    std::vector<std::size_t> left, lots;
    for (std::size_t l = 0; l < count; ++l) {
      if (repeats_ || !moved_[l]) left.push_back(l);
    }
    for (std::size_t l = 0; left.empty() && l < count; ++l) lots.push_back(l);
    if (!left.empty()) lots = left;
    if (kind_ == 0) return lots[draws_.below(lots.size())];
    std::vector<std::size_t> urn;  // a ball for each time, and one more
    for (const std::size_t l : lots) urn.insert(urn.end(), 1 + often_[l], l);
    return urn[draws_.below(urn.size())];
  }

  PlainGala gala_;
  Random draws_;
  std::uint64_t kind_;
  bool repeats_, match_;
  std::size_t turn_ = 0;
  std::map<std::size_t, std::size_t> often_;
  std::map<std::size_t, bool> moved_;
  double wanted_ = 0, went_ = 0;
};

}  // namespace gala
