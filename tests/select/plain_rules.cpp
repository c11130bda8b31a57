#include <functional>

#include "tests/select/plain_gala.h"

namespace gala {
namespace {

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
               most = random.below(2) == 0 ? 0 : random.uniform(0.1, 2),
               share = random.below(2) == 0 ? 0 : random.uniform(1e-3, 0.1);
  const bool calm = random.below(2) == 0;
  const std::string spec = fmt::format("paced:step={},images={},most={},share={},calm={}", step,
                                       enough, most, share, calm ? "yes" : "no");
  return std::make_unique<PlainFunction>(spec, [=](const Scene& scene) {
    const bool few = scene.images != 0 && scene.images < enough;
    Numbers weights;
    for (std::size_t l = 0; l < scene.probed.size(); ++l) {
      double weight = scene.probed[l];
      if (most != 0 && weight > most) weight = most;
      if (few) weight *= scene.images / enough;
      if (calm) weight *= scene.moved;
      bool kernel = false;
      for (const std::size_t t : scene.site.layers[l].tensors) {
        kernel = kernel || scene.site.layout.entries[t].sizes.size() > 1;
      }
      const double count = static_cast<double>(scene.sums[l].count);
      const double far = share != 0 && kernel
                             ? share * std::sqrt(scene.sums[l].value_sq) / std::sqrt(count)
                             : step;
      weights.push_back(weight * far / scene.rate);
    }
    return weights;
  });
}

/// By the vectors themselves, and nothing where there is no past.
class PlainTrend : public PlainRule {
 public:
  explicit PlainTrend(Random& random)
      : score_(random.below(3)),
        mode_(random.below(3)),
        threshold_(mode_ == 2 ? random.uniform(0.1, 1) : random.uniform(-0.5, 1)),
        length_(static_cast<std::int64_t>(random.below(4))) {}
  std::string spec() const override {
    const char* scores[] = {"cosine", "excess", "noise"};
    const char* modes[] = {"single", "multiple", "weights"};
    return fmt::format("trend:score={},mode={},threshold={},window={}", scores[score_],
                       modes[mode_], threshold_, length_);
  }
  std::int64_t window() const override { return length_; }

  std::optional<Numbers> choose(const Scene& scene) override {
    const std::size_t count = scene.sums.size();
    Numbers scores, weights(count, 0.0);
    for (std::size_t l = 0; l < count; ++l) {
      scores.push_back(score(scene, l));
      if (std::abs(scores[l] - threshold_) < 1e-9) return std::nullopt;
    }
    if (mode_ == 0) {
      std::size_t best = 0;
      for (std::size_t l = 1; l < count; ++l) {
        const double gap = scores[l] - scores[best];
        // Near ties of different vectors: nobody's choice is wrong.
        if (std::abs(gap) < 1e-9 && gap != 0) return std::nullopt;
        if (gap > 0) best = l;
      }
      if (scores[best] > threshold_) weights[best] = 1;
      return weights;
    }
    for (std::size_t l = 0; l < count; ++l) {
      if (mode_ == 1) weights[l] = scores[l] > threshold_ ? 1 : 0;
      if (mode_ == 2) weights[l] = std::max(0.0, std::min(1.0, scores[l] / threshold_));
    }
    return weights;
  }

 private:
  double score(const Scene& scene, std::size_t l) const {
    const Numbers &u = scene.update[l], &d = scene.shift[l];
    const double length = std::sqrt(Scene::dot(u, u)), past = std::sqrt(Scene::dot(d, d));
    if (past == 0) return -1e300;  // it never moves
    if (length == 0) return 0;
    if (score_ == 0) return scene.cosine_of(l);
    if (score_ == 1) return scene.cosine_of(l) - length / std::hypot(length, past);
    const auto n = static_cast<double>(scene.site.layers[l].count);
    return std::sqrt(n) * Scene::dot(u, d) / (length * past);
  }

  std::uint64_t score_, mode_;
  double threshold_;
  std::int64_t length_;
};

std::unique_ptr<PlainRule> within_a_budget(Random& random) {
  const double step = random.uniform(1e-5, 1e-1),
               most = random.below(2) == 0 ? 0 : random.uniform(0.1, 2);
  return std::make_unique<PlainFunction>(
      fmt::format("relative:step={},most={}", step, most), [=](const Scene& scene) {
        Numbers weights;
        for (const LayerSums& sums : scene.sums) {
          const double u = std::sqrt(sums.update_sq), value = std::sqrt(sums.value_sq);
          const double whole = u > 0 ? step * value / u : 0;
          weights.push_back(std::min(whole, most > 0 ? most : 16777216.0));
        }
        return weights;
      });
}

/// Keeps every reward there ever was.
class PlainBandit : public PlainRule {
 public:
  PlainBandit(Random& random, std::uint64_t seed)
      : explore_(random.uniform(0, 1)),
        keep_(random.uniform(0, 1)),
        draws_(seed, "selector bandit") {}
  std::string spec() const override {
    return fmt::format("bandit:explore={},keep={}", explore_, keep_);
  }
  std::optional<Numbers> choose(const Scene& scene) override {
    const std::size_t count = scene.sums.size();
    if (!losses_.empty()) rewards_[choices_.back()].push_back(losses_.back() - scene.loss);
    std::size_t choice = 0;
    for (std::size_t l = 1; l < count; ++l) {
      const double gap = value(l) - value(choice);
      if (std::abs(gap) < 1e-12 && gap != 0) return std::nullopt;
      if (gap > 0) choice = l;
    }
    if (draws_.uniform() < explore_) choice = draws_.below(count);
    losses_.push_back(scene.loss);
    choices_.push_back(choice);
    Numbers weights(count, 0.0);
    weights[choice] = 1;
    return weights;
  }

 private:
  double value(std::size_t l) {
    double sum = 0, share = 1 - keep_;
    const Numbers& rewards = rewards_[l];
    for (std::size_t i = rewards.size(); i-- > 0; share *= keep_) sum += share * rewards[i];
    return sum;
  }

  double explore_, keep_;
  Random draws_;
  std::map<std::size_t, Numbers> rewards_;
  Numbers losses_;
  std::vector<std::size_t> choices_;
};

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

}  // namespace

const std::map<std::string_view, RuleMaker>& plain_rules() {
  static const std::map<std::string_view, RuleMaker> rules = {
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
      {"trend",
       [](Random& r, std::uint64_t) -> std::unique_ptr<PlainRule> {
         return std::make_unique<PlainTrend>(r);
       }},
      {"relative", [](Random& r, std::uint64_t) { return within_a_budget(r); }},
      {"bandit",
       [](Random& r, std::uint64_t seed) -> std::unique_ptr<PlainRule> {
         return std::make_unique<PlainBandit>(r, seed);
       }},
  };
  return rules;
}

}  // namespace gala
