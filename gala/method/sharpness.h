#pragma once
#include "gala/method/perturbation.h"

namespace gala {

/// Sharpness-aware minimisation (Foret et al. 2021), as SAR (Niu et al. 2023) has it: the gradient of a
/// step is that at θ + rho · g / |g|, with g the gradient at θ over all adapted parameters.
class SharpnessPerturbation : public Perturbation {
 public:
  struct Options {
    double rho = 0.05;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("rho", &Options::rho, "how far from the parameters");
    }
  };
  explicit SharpnessPerturbation(const Options& options);
  void leave(const ParameterArena& parameters, const Gradients& gradients) override;
  void come_back(const ParameterArena& parameters) override;

 private:
  Options options_;
  at::Tensor before_;
};

}  // namespace gala
