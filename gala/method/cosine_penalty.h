#pragma once
#include "gala/method/penalty.h"

namespace gala {

/// Every tensor is to point where it pointed: weight · mean over tensors of -cos(θ, θ_source) (PeTTA,
/// Hoang et al. 2024). Its length is free. A tensor that is all zeros, now or in the source, has no direction and no pull.
class CosinePenalty : public Penalty {
 public:
  struct Options {
    double weight = 10;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("weight", &Options::weight, "beside the loss");
    }
  };
  explicit CosinePenalty(const Options& options);
  void learn(Model& model, const ParameterArena& parameters, const SourceImages& images) override;
  void add(const ParameterArena& parameters, Gradients& gradients) const override;

 private:
  Options options_;
  at::Tensor source_;
};

}  // namespace gala
