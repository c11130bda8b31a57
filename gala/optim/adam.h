#pragma once
#include <cmath>

#include "gala/optim/rule_optimizer.h"

namespace gala {

/// One step of Adam for one layer; both moments start at zero.
///   m ← β₁ m + (1-β₁) g,  v ← β₂ v + (1-β₂) g²,  u = -η/(1-β₁ᵗ) · m / (√v / √(1-β₂ᵗ) + ε)
struct AdamRule {
  static constexpr int kMoments = 2;
  float beta1, beta2, epsilon, weight_decay;
  float fresh1, fresh2;  ///< 1-β₁ and 1-β₂, rounded once: in float32, 1-0.999 is off by 1e-5
  float step_size;       ///< η / (1-β₁ᵗ)
  float second_correction;  ///< 1 / √(1-β₂ᵗ)

  template <class T>
  void advance(const T& gradient, const T& value, T* moments) const {
    const T g = gradient + weight_decay * value;
    moments[0] = beta1 * moments[0] + fresh1 * g;
    moments[1] = beta2 * moments[1] + fresh2 * (g * g);
  }
  template <class T>
  T update(const T&, const T&, const T* moments) const {
    using std::sqrt;
    return -step_size * (moments[0] / (second_correction * sqrt(moments[1]) + epsilon));
  }
};

/// Adam (Kingma & Ba 2015) with L2 weight decay, as torch.optim.Adam, split into measuring and
/// applying. In the theory of the paper u is an SGD step; its experiments use Adam, and u is then the
/// whole Adam displacement of a layer.
class Adam : public RuleOptimizer<AdamRule> {
 public:
  struct Options {
    double rate = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;
    Moments moments = Moments::kAll;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("rate", &Options::rate, "learning rate");
      option("beta1", &Options::beta1, "decay of the first moment");
      option("beta2", &Options::beta2, "decay of the second moment");
      option("epsilon", &Options::epsilon, "added to the root of the second moment");
      option("weight_decay", &Options::weight_decay, "times the parameter, added to the gradient");
      option("moments", &Options::moments, "whose moments advance: every layer's, or the movers'");
    }
  };

  explicit Adam(const Options& options);
  double learning_rate() const override { return options_.rate; }
  void set_learning_rate(double rate) override { options_.rate = rate; }

 protected:
  AdamRule rule(std::int64_t step) const override;

 private:
  Options options_;
};

}  // namespace gala
