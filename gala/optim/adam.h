#pragma once
#include "gala/optim/adam_rule.h"
#include "gala/optim/rule_optimizer.h"

namespace gala {

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
