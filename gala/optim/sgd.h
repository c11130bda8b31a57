#pragma once
#include "gala/optim/rule_optimizer.h"
#include "gala/optim/sgd_rule.h"

namespace gala {

/// Stochastic gradient descent with momentum, Nesterov's look-ahead and L2 weight decay, as
/// torch.optim.SGD without dampening.
class Sgd : public RuleOptimizer<SgdRule> {
 public:
  struct Options {
    double rate = 1e-3;
    double momentum = 0;
    bool nesterov = false;
    double weight_decay = 0;
    Moments moments = Moments::kAll;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("rate", &Options::rate, "learning rate");
      option("momentum", &Options::momentum, "share of the last step that is kept");
      option("nesterov", &Options::nesterov, "look ahead along the momentum");
      option("weight_decay", &Options::weight_decay, "times the parameter, added to the gradient");
      option("moments", &Options::moments, "whose moments advance: every layer's, or the movers'");
    }
  };

  explicit Sgd(const Options& options);
  double learning_rate() const override { return options_.rate; }
  void set_learning_rate(double rate) override { options_.rate = rate; }

 protected:
  SgdRule rule(std::int64_t step) const override;

 private:
  Options options_;
};

}  // namespace gala
