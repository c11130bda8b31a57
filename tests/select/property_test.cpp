// Every selector on random layers and options against its rule written down anew. Without LibTorch.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "gala/base/random.h"
#include "gala/optim/host_workspace.h"
#include "gala/select/selector.h"
#include "tests/step/random_site.h"

namespace gala {
namespace {

using Numbers = std::vector<double>;

/// What a selector sees of a step: random vectors, of which the sums are made, and gradients.
struct Scene {
  RandomSite site;
  Numbers probed;
  std::vector<Numbers> update, shift;  ///< by layer
  std::vector<LayerSums> sums;
  std::vector<std::vector<float>> gradients;
  std::vector<const float*> pointers;
  StepClock clock;
  double rate = 1e-3, images = 0;
  HostWorkspace workspace{1};

  explicit Scene(std::uint64_t seed) : site(seed) {}

  static double dot(const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }
  static Numbers draw(Random& random, double size) {
    Numbers values(4);
    for (double& each : values) each = size * random.normal();
    return values;
  }

  /// Layers of every kind: that would not move, have not moved, turn back, or are like the one before.
  void begin_step(Random& random, int number) {
    const std::size_t count = site.layers.size();
    update.assign(count, {});
    shift.assign(count, {});
    sums.clear();
    probed.clear();
    for (std::size_t l = 0; l < count; ++l) {
      update[l] = draw(random, std::pow(10.0, random.uniform(-3, 3)));
      shift[l] = draw(random, std::sqrt(dot(update[l], update[l])) * random.uniform(0, 2));
      double value_sq = std::pow(10.0, random.uniform(-3, 3));
      switch (random.below(8)) {
        case 0:
          update[l].assign(4, 0.0);
          break;
        case 1:
          shift[l].assign(4, 0.0);
          break;
        case 2:
          value_sq = 0;
          break;
        case 3:
          for (std::size_t i = 0; i < 4; ++i) shift[l][i] = -3 * update[l][i];
          break;
        case 4:
          if (l > 0) update[l] = update[l - 1], shift[l] = shift[l - 1];
          break;
        default:
          break;
      }
      const double gradient_sq = random.below(6) == 0 ? 0 : std::pow(10.0, random.uniform(-6, 6));
      sums.push_back({dot(update[l], update[l]), dot(update[l], shift[l]), dot(shift[l], shift[l]),
                      gradient_sq, value_sq, site.layers[l].count});
      probed.push_back(random.uniform(-1, 2));
    }
    gradients = site.gradients(number);
    pointers = pointers_to(gradients);
  }
  Proposal proposal() {
    return {site.layers, sums, clock, rate, site.layout, pointers, workspace, probed, images};
  }
  /// Eq. 5 as it is printed, from the vectors themselves.
  double cosine_of(std::size_t l) const {
    Numbers sum = update[l];
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += shift[l][i];
    const double length = std::sqrt(dot(update[l], update[l]) * dot(sum, sum));
    return length > 0 ? dot(update[l], sum) / length : 0;
  }
};

/// A rule in its own words. None where two layers are too near to tell apart in double.
class PlainRule {
 public:
  virtual ~PlainRule() = default;
  virtual std::string spec() const = 0;
  virtual std::int64_t window() const { return 0; }
  virtual std::optional<Numbers> choose(const Scene& scene) = 0;
};

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

class PlainSnr : public PlainRule {
 public:
  explicit PlainSnr(Random& random)
      : paper_(random.below(2) == 0),
        threshold_(random.uniform(0, 2)),
        history_(2 + random.below(3)) {
    if (paper_) threshold_ /= 2;
  }
  std::string spec() const override {
    return fmt::format("auto_snr:definition={},threshold={},history={}", paper_ ? "paper" : "code",
                       threshold_, history_);
  }
  std::optional<Numbers> choose(const Scene& scene) override {
    seen_.push_back(scene.gradients);
    if (seen_.size() > history_) seen_.erase(seen_.begin());
    if (paper_ && seen_.size() < 2) return Numbers(scene.sums.size(), 1.0);
    Numbers scores;
    for (const Layer& layer : scene.site.layers.layers) {
      double sum = 0;
      for (const std::size_t t : layer.tensors)
        sum += paper_ ? over_time(scene, t) : rows(scene, t);
      scores.push_back(sum / static_cast<double>(layer.count));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    for (double& score : scores) {
      if (paper_) score = largest > 0 ? score / largest : 0;
      if (std::abs(score - threshold_) < 1e-9) return std::nullopt;
      score = score >= threshold_ ? 1 : 0;
    }
    return scores;
  }

 private:
  static double ratio(const Numbers& values, bool of_mean) {
    const auto count = static_cast<double>(values.size());
    double mean = 0, square = 0, variance = 0;
    for (const double each : values) mean += each / count;
    for (const double each : values) {
      square += each * each;
      variance += values.size() > 1 ? (each - mean) * (each - mean) / (count - 1) : 0;
    }
    return (of_mean ? mean * mean : square) / (variance + 1e-8);
  }
  /// Entries that differ in their first index alone stand together.
  static double rows(const Scene& scene, std::size_t t) {
    const auto& entry = scene.site.layout.entries[t];
    if (scene.gradients[t].empty()) return 0;
    std::map<std::vector<std::int64_t>, Numbers> columns;
    std::vector<std::int64_t> index(entry.sizes.size(), 0);
    for (std::int64_t k = 0; k < entry.range.size; ++k) {
      std::int64_t place = 0;
      for (std::size_t d = 0; d < index.size(); ++d) place += index[d] * entry.strides[d];
      std::vector<std::int64_t> rest = index;
      if (!rest.empty()) rest.erase(rest.begin());
      columns[rest].push_back(scene.gradients[t][static_cast<std::size_t>(place)]);
      for (std::size_t d = index.size(); d-- > 0;) {
        if (++index[d] < entry.sizes[d]) break;
        index[d] = 0;
      }
    }
    double sum = 0;
    for (const auto& [rest, values] : columns) sum += ratio(values, /*of_mean=*/false);
    return sum;
  }
  double over_time(const Scene& scene, std::size_t t) const {
    double sum = 0;
    for (std::int64_t k = 0; k < scene.site.layout.entries[t].range.size; ++k) {
      Numbers values;
      for (const auto& gradients : seen_) {
        values.push_back(gradients[t].empty() ? 0 : gradients[t][static_cast<std::size_t>(k)]);
      }
      sum += ratio(values, /*of_mean=*/true);
    }
    return sum;
  }

  bool paper_;
  double threshold_;
  std::size_t history_;
  std::vector<std::vector<std::vector<float>>> seen_;
};

/// Rules of a line or two.
class PlainFunction : public PlainRule {
 public:
  using Function = std::function<Numbers(const Scene&)>;
  PlainFunction(std::string spec, Function function)
      : spec_(std::move(spec)), function_(std::move(function)) {}
  std::string spec() const override { return spec_; }
  std::optional<Numbers> choose(const Scene& scene) override { return function_(scene); }

 private:
  std::string spec_;
  Function function_;
};

std::unique_ptr<PlainRule> same_for_all(const std::string& spec, double weight) {
  return std::make_unique<PlainFunction>(
      spec, [weight](const Scene& scene) { return Numbers(scene.sums.size(), weight); });
}

std::unique_ptr<PlainRule> as_probed(const std::string& spec) {
  return std::make_unique<PlainFunction>(spec, [](const Scene& scene) { return scene.probed; });
}

Numbers relative_gradients(const Scene& scene) {
  Numbers weights;
  for (const LayerSums& layer : scene.sums) {
    weights.push_back(
        layer.value_sq == 0 ? 0 : std::sqrt(layer.gradient_sq) / std::sqrt(layer.value_sq));
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  for (double& weight : weights) weight = largest == 0 ? 0 : weight / largest;
  return weights;
}

/// So far as the weight says, at a pace of its own, and slower where few images speak.
std::unique_ptr<PlainRule> at_its_pace(Random& random) {
  const double step = random.uniform(1e-5, 1e-2), enough = random.below(3) == 0 ? 0 : 40,
               most = random.below(2) == 0 ? 0 : random.uniform(0.1, 2);
  return std::make_unique<PlainFunction>(
      fmt::format("paced:step={},images={},most={}", step, enough, most), [=](const Scene& scene) {
        const bool few = scene.images != 0 && scene.images < enough;
        Numbers weights;
        for (const double each : scene.probed) {
          const double weight = most != 0 && each > most ? most : each;
          weights.push_back(weight * (few ? scene.images / enough : 1) * step / scene.rate);
        }
        return weights;
      });
}

std::unique_ptr<PlainRule> first_layer() {
  return std::make_unique<PlainFunction>("fixed:layers=l0", [](const Scene& scene) {
    Numbers weights(scene.sums.size(), 0.0);
    weights[0] = 1;
    return weights;
  });
}

std::unique_ptr<PlainRule> drawn_evenly(std::uint64_t seed) {
  return std::make_unique<PlainFunction>(
      "random", [draws = Random(seed, "selector random")](const Scene& scene) mutable {
        Numbers weights(scene.sums.size(), 0.0);
        weights[draws.below(weights.size())] = 1;
        return weights;
      });
}

using Maker = std::unique_ptr<PlainRule> (*)(Random&, std::uint64_t);
const std::map<std::string_view, Maker> kRules = {
    {"gala",
     [](Random& r, std::uint64_t) -> std::unique_ptr<PlainRule> {
       return std::make_unique<PlainGala>(r);
     }},
    {"control",
     [](Random& r, std::uint64_t seed) -> std::unique_ptr<PlainRule> {
       return std::make_unique<PlainControl>(r, seed);
     }},
    {"auto_snr",
     [](Random& r, std::uint64_t) -> std::unique_ptr<PlainRule> {
       return std::make_unique<PlainSnr>(r);
     }},
    {"auto_rgn",
     [](Random&, std::uint64_t) -> std::unique_ptr<PlainRule> {
       return std::make_unique<PlainFunction>("auto_rgn", relative_gradients);
     }},
    {"all", [](Random&, std::uint64_t) { return same_for_all("all", 1); }},
    {"none", [](Random&, std::uint64_t) { return same_for_all("none", 0); }},
    {"norm_affine", [](Random&, std::uint64_t) { return same_for_all("norm_affine", 1); }},
    {"fixed", [](Random&, std::uint64_t) { return first_layer(); }},
    {"random", [](Random&, std::uint64_t seed) { return drawn_evenly(seed); }},
    {"palm", [](Random&, std::uint64_t) { return as_probed("palm"); }},
    {"paced", [](Random& r, std::uint64_t) { return at_its_pace(r); }},
    {"law", [](Random&, std::uint64_t) { return as_probed("law"); }},
};

TEST(Selectors, AllHaveAPlainRuleToCompareWith) {
  for (const auto& entry : selector_registry())
    EXPECT_TRUE(kRules.contains(entry.name)) << entry.name;
}

class EverySelector : public testing::TestWithParam<std::string_view> {};

TEST_P(EverySelector, ChoosesAsItsRuleSays) {
  constexpr int kSeeds = 40, kSteps = 25;
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed, "rule");
    const auto rule = kRules.at(GetParam())(random, seed);
    Scene scene(seed);
    const auto selector = make_selector(rule->spec(), seed);
    selector->attach(scene.site.layers);
    ASSERT_EQ(selector->window().length, rule->window());
    for (int number = 1; number <= kSteps; ++number) {
      scene.begin_step(random, number);
      scene.rate = random.uniform(1e-4, 1e-2);
      scene.images = random.below(3) == 0 ? 0 : random.uniform(1, 90);
      const std::optional<Numbers> expected = rule->choose(scene);
      const Numbers found = selector->select(scene.proposal());
      if (!expected) break;  // what a rule remembers may be another from here on
      ASSERT_EQ(found.size(), expected->size());
      for (std::size_t l = 0; l < found.size(); ++l) {
        ASSERT_NEAR(found[l], (*expected)[l], 1e-12 * std::max(1.0, std::abs(found[l])))
            << rule->spec() << " seed " << seed << " step " << number << " layer " << l;
      }
      ++compared;
      scene.clock.advance(rule->window());
    }
  }
  EXPECT_GT(compared, kSeeds * kSteps / 2) << "too few choices were clear";
}

INSTANTIATE_TEST_SUITE_P(Selector, EverySelector, testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const auto& entry : selector_registry())
                             names.push_back(entry.name);
                           return names;
                         }()),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace gala
