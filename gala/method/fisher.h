#pragma once
#include <cstdint>

#include "gala/method/penalty.h"

namespace gala {

/// weight · Σ (θ - θ₀)²: parameters that are far from the source are pulled back.
class DistancePenalty : public Penalty {
 public:
  struct Options {
    double weight = 1;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("weight", &Options::weight, "of the penalty");
    }
  };
  explicit DistancePenalty(const Options& options);
  void learn(Model& model, const ParameterArena& parameters, const SourceImages& images) override;
  void add(const ParameterArena& parameters, Gradients& gradients) const override;

 protected:
  explicit DistancePenalty(double weight) : weight_(weight) {}
  /// By number: how much it is held back, [values]; undefined: all alike.
  at::Tensor importance_;
  at::Tensor source_;  ///< θ₀

 private:
  double weight_;
};

/// weight · Σ F (θ - θ₀)² (Niu et al. 2022, EATA), with F the Fisher information of a number, estimated from
/// images of the source. As in the published code it is the square of the gradient of a whole *batch*, of the
/// cross-entropy against the network's own labels, averaged over batches.
class FisherPenalty : public DistancePenalty {
 public:
  struct Options {
    double weight = 1;
    std::int64_t images = 2000;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("weight", &Options::weight, "of the penalty; the published one is 2000 on ImageNet-C");
      option("images", &Options::images, "of --source-data, the first ones; 0: all");
    }
  };
  explicit FisherPenalty(const Options& options);
  bool wants_source_images() const override { return true; }
  void learn(Model& model, const ParameterArena& parameters, const SourceImages& images) override;
  void remember(StateArchive& archive) override;

 private:
  Options options_;
};

}  // namespace gala
