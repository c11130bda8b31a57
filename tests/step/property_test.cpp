// Optimizers, displacement and windows on random layouts, partitions and options, against plain loops in
// double. It links the numeric heart alone.
#include <gtest/gtest.h>

#include <set>

#include "tests/step/random_site.h"

namespace gala {
namespace {

using Numbers = std::vector<double>;

/// Weights of every kind, drawn anew at every step: none, all, a little, too much, backwards.
class DrawnWeights : public Selector {
 public:
  DrawnWeights(std::uint64_t seed, Window window) : random_(seed, "weights"), window_(window) {}
  Window window() const override { return window_; }
  std::vector<double> select(const Proposal& proposal) override {
    drawn.clear();
    for (std::size_t l = 0; l < proposal.layers.size(); ++l) {
      const double kinds[] = {0, 1, 0.01, random_.uniform(-1, 2)};
      drawn.push_back(kinds[random_.below(4)]);
    }
    return drawn;
  }
  std::vector<double> drawn;

 private:
  Random random_;
  Window window_;
};

/// The rule of an optimizer as its paper has it, in double, for one parameter.
struct PlainRule {
  bool adam = true, nesterov = false, selected = false;
  double rate = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum = 0, decay = 0;

  explicit PlainRule(Random& random) : adam(random.below(2) == 0) {
    rate = std::pow(10.0, random.uniform(-2, -0.5));
    decay = random.below(2) == 0 ? random.uniform(0, 0.3) : 0;
    selected = random.below(2) == 0;
    if (adam) {
      beta1 = random.below(4) == 0 ? 0 : random.uniform(0, 0.95);
      // Where only the second is 0, a gradient near 0 makes an update without bounds.
      beta2 = beta1 == 0 && random.below(2) == 0 ? 0 : random.uniform(0.5, 0.999);
      epsilon = std::pow(10.0, random.uniform(-8, -3));
    } else {
      momentum = random.below(3) == 0 ? 0 : random.uniform(0.1, 0.95);
      nesterov = momentum > 0 && random.below(2) == 0;
    }
  }
  std::string spec() const {
    const std::string shared = fmt::format(":rate={},weight_decay={},moments={}", rate, decay,
                                           selected ? "selected" : "all");
    return adam ? fmt::format("adam{},beta1={},beta2={},epsilon={}", shared, beta1, beta2, epsilon)
                : fmt::format("sgd{},momentum={},nesterov={}", shared, momentum,
                              nesterov ? "yes" : "no");
  }
  /// Advances the moments and gives the update at step `step` of this layer.
  double update(double gradient, double value, std::int64_t step, double (&moments)[2]) const {
    const double g = gradient + decay * value;
    if (!adam) {
      moments[0] = momentum * moments[0] + g;
      return -rate * (nesterov ? g + momentum * moments[0] : moments[0]);
    }
    moments[0] = beta1 * moments[0] + (1 - beta1) * g;
    moments[1] = beta2 * moments[1] + (1 - beta2) * g * g;
    const auto t = static_cast<double>(step);
    const double mean = moments[0] / (1 - std::pow(beta1, t));
    const double square = moments[1] / (1 - std::pow(beta2, t));
    return -rate * mean / (std::sqrt(square) + epsilon);
  }
};

/// One layer, number by number. The displacement is told by where the layer stood when windows opened.
struct PlainLayer {
  Numbers value, first, second;  ///< parameters and moments
  Numbers gone;                  ///< the sum of what was applied
  Numbers wished, lately;        ///< of what was proposed: all that counts, and in this window
  std::vector<Numbers> opened;   ///< `gone` when each window opened
  Numbers update;                ///< of the coming step
  std::int64_t steps = 0;
  double largest = 0;  ///< |update| so far

  void open(bool forget) {
    opened.push_back(gone);
    wished = lately;
    lately.assign(lately.size(), 0);
    if (!forget) return;
    first.assign(first.size(), 0);
    second.assign(second.size(), 0);
    steps = 0;
  }
  double displacement(std::size_t i, Anchor anchor) const {
    const std::size_t back = anchor == Anchor::kPrevious && opened.size() > 1 ? 2 : 1;
    return gone[i] - opened[opened.size() - back][i];
  }
};

double norm(const Numbers& values) {
  double sum = 0;
  for (const double each : values) sum += each * each;
  return std::sqrt(sum);
}

/// A stepper of random options and its plain twin.
class Twins {
 public:
  explicit Twins(std::uint64_t seed) : random_(seed, "options"), rule_(random_), site_(seed) {
    window_.length = std::vector<std::int64_t>{0, 1, 3, 7}[random_.below(4)];
    window_.anchor = random_.below(2) == 0 ? Anchor::kWindow : Anchor::kPrevious;
    window_.form = std::array{DisplacementForm::kDifference, DisplacementForm::kSum,
                              DisplacementForm::kProposed}[random_.below(3)];
    window_.keep = random_.below(2) == 0 ? 1 : 0.7;
    window_.resets_optimizer = random_.below(3) == 0;
    for (const Layer& layer : site_.layers.layers) {
      PlainLayer plain;
      for_each(layer,
               [&](std::size_t place, float) { plain.value.push_back(site_.values[place]); });
      plain.first = plain.second = plain.gone = plain.wished = plain.lately = plain.update =
          Numbers(plain.value.size(), 0.0);
      plain_.push_back(std::move(plain));
    }
    auto selector = std::make_unique<DrawnWeights>(seed, window_);
    selector_ = selector.get();
    const int threads = 1 + static_cast<int>(random_.below(3));
    stepper_ = make_stepper(site_, rule_.spec(), std::move(selector), threads);
  }

  std::string options() const {
    return fmt::format("{} window {} {} {} {}", rule_.spec(), window_.length,
                       format_value(window_.anchor), format_value(window_.form),
                       window_.resets_optimizer);
  }

  void step(int number) {
    gradients_ = site_.gradients(number);
    if (window_step_ == 1 && !open_) {
      for (PlainLayer& layer : plain_) layer.open(window_.resets_optimizer);
      open_ = true;
    }
    float loss = 1;
    if (random_.below(6) == 0) return refuse(loss);
    std::vector<Numbers> firsts, seconds;
    for (std::size_t l = 0; l < plain_.size(); ++l) propose(l, firsts, seconds);
    const StepRecord record = stepper_->step(pointers_to(gradients_), &loss);
    ASSERT_FALSE(record.refused);
    ASSERT_EQ(record.layers.size(), plain_.size());
    for (std::size_t l = 0; l < plain_.size(); ++l) {
      compare(record.layers[l], plain_[l]);
      move(plain_[l], selector_->drawn[l], firsts[l], seconds[l]);
      compare_values(l, number);
    }
    open_ = false;
    window_step_ = window_.length > 0 && window_step_ == window_.length ? 1 : window_step_ + 1;
    EXPECT_EQ(stepper_->clock().window_step, window_step_);
  }

  int cosines_compared = 0;

 private:
  template <class Use>
  void for_each(const Layer& layer, const Use& use) {
    for (const std::size_t t : layer.tensors) {
      const Range range = site_.layout.entries[t].range;
      for (std::int64_t i = 0; i < range.size; ++i) {
        const bool none = gradients_.empty() || gradients_[t].empty();
        use(static_cast<std::size_t>(range.begin + i),
            none ? 0.0F : gradients_[t][static_cast<std::size_t>(i)]);
      }
    }
  }

  /// A loss or a gradient that is not a number: nothing moves, also later nothing is felt of it.
  void refuse(float loss) {
    const std::vector<float> before = site_.values;
    std::vector<std::vector<float>> broken = gradients_;
    const std::size_t t = random_.below(broken.size());
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    if (broken[t].empty()) {
      loss = kNan;
    } else {
      broken[t][random_.below(broken[t].size())] = random_.below(2) == 0 ? kNan : -INFINITY;
    }
    EXPECT_TRUE(stepper_->step(pointers_to(broken), &loss).refused);
    EXPECT_EQ(site_.values, before);
  }

  void propose(std::size_t l, std::vector<Numbers>& firsts, std::vector<Numbers>& seconds) {
    PlainLayer& layer = plain_[l];
    firsts.push_back(layer.first);
    seconds.push_back(layer.second);
    std::size_t i = 0;
    for_each(site_.layers[l], [&](std::size_t, float gradient) {
      double moments[2] = {layer.first[i], layer.second[i]};
      layer.update[i] = rule_.update(gradient, layer.value[i], layer.steps + 1, moments);
      firsts[l][i] = moments[0];
      seconds[l][i++] = moments[1];
    });
    layer.largest = std::max(layer.largest, norm(layer.update));
  }

  void compare(const LayerRecord& found, const PlainLayer& layer) {
    // Float32 has seven digits; where moments cancel, of the larger ones that they were made of.
    const double length = norm(layer.update), near = 3e-5 * (length + layer.largest);
    EXPECT_NEAR(found.update_norm, length, near);
    Numbers shift(layer.value.size()), sum(layer.value.size());
    double along = 0;
    for (std::size_t i = 0; i < shift.size(); ++i) {
      shift[i] = displacement(layer, i);
      sum[i] = layer.update[i] + shift[i];
      along += layer.update[i] * sum[i];
    }
    const bool difference = window_.form == DisplacementForm::kDifference;
    const double rounding = difference ? 1e-6 * norm(layer.value) : 0;
    EXPECT_NEAR(found.shift_norm, norm(shift), 3e-5 * (norm(shift) + layer.largest) + rounding);
    if (norm(shift) == 0 && length > 0) {
      EXPECT_EQ(found.cosine, 1) << "the layer has not moved";
      return;
    }
    const double shorter = std::min(length, norm(sum));
    const double error = shorter > 0 ? (2 * near + rounding) / shorter : 1;
    if (error > 0.02) return;  // too little is left of it to have a direction
    EXPECT_NEAR(found.cosine, along / (length * norm(sum)), 1e-6 + 2 * error);
    ++cosines_compared;
  }

  double displacement(const PlainLayer& layer, std::size_t i) const {
    if (window_.form != DisplacementForm::kProposed) return layer.displacement(i, window_.anchor);
    return window_.anchor == Anchor::kPrevious ? layer.wished[i] : layer.lately[i];
  }

  void move(PlainLayer& layer, double weight, const Numbers& first, const Numbers& second) const {
    for (std::size_t i = 0; i < layer.value.size(); ++i) {
      layer.value[i] += weight * layer.update[i];
      layer.gone[i] += weight * layer.update[i];
      layer.wished[i] = window_.keep * layer.wished[i] + layer.update[i];
      layer.lately[i] = window_.keep * layer.lately[i] + layer.update[i];
    }
    if (rule_.selected && weight == 0) return;
    layer.first = first;
    layer.second = second;
    ++layer.steps;
  }

  void compare_values(std::size_t l, int number) {
    const PlainLayer& layer = plain_[l];
    double worst = 0;
    std::size_t i = 0;
    for_each(site_.layers[l], [&](std::size_t place, float) {
      const double gap = std::abs(site_.values[place] - layer.value[i]);
      worst = std::max(worst, gap / (1 + std::abs(layer.value[i])));
      ++i;
    });
    EXPECT_LT(worst, 1e-7 * (number + 2) + 3e-5 * number * layer.largest);
  }

  Random random_;
  PlainRule rule_;
  RandomSite site_;
  Window window_;
  std::vector<PlainLayer> plain_;
  std::vector<std::vector<float>> gradients_;
  DrawnWeights* selector_ = nullptr;
  std::unique_ptr<Stepper> stepper_;
  std::int64_t window_step_ = 1;
  bool open_ = false;
};

TEST(Optimizers, AreTheirFormulasOnAnyLayoutAndPartition) {
  constexpr int kSites = 30, kSteps = 16;
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= kSites; ++seed) {
    Twins twins(seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, twins.options()));
    for (int number = 1; number <= kSteps; ++number) {
      twins.step(number);
      ASSERT_FALSE(testing::Test::HasFailure()) << "at step " << number;
    }
    compared += twins.cosines_compared;
  }
  EXPECT_GT(compared, kSites * kSteps) << "too few cosines were clear enough to be compared";
}

/// Of the two that the test above draws; a third needs its formula there.
TEST(Optimizers, AreAllChecked) {
  std::set<std::string_view> known;
  for (const auto& entry : optimizer_registry()) known.insert(entry.name);
  EXPECT_EQ(known, (std::set<std::string_view>{"adam", "sgd"}));
}

}  // namespace
}  // namespace gala
