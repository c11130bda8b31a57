#pragma once
#include "gala/method/probe.h"
#include "gala/select/probed.h"

namespace gala {

/// What LAW looks at; the formulas stand with LawSelector.
class LawProbe : public Probe {
 public:
  using Options = LawSelector::Options;
  explicit LawProbe(const Options& options) : options_(options) {}
  void attach(const ParameterArena& parameters, const LayerPartition& layers) override;
  at::Tensor scalar(const Output& output) const override;
  at::Tensor look(const ParameterArena& parameters, const Gradients& gradients) override;
  void see(const ParameterArena& parameters, const Gradients& gradients) override;
  void reset() override;
  void remember(StateArchive& archive) override;

 private:
  Options options_;
  ByLayer by_layer_;
  at::Tensor information_;  ///< Σ over steps of the mean of g², double [layers]
  at::Tensor carried_;      ///< gradients of the step before, in the arena's layout, or undefined
};

}  // namespace gala
