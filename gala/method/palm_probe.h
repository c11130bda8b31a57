#pragma once
#include <vector>

#include "gala/method/probe.h"
#include "gala/select/probed.h"

namespace gala {

/// What PALM looks at; the formulas stand with PalmSelector.
class PalmProbe : public Probe {
 public:
  using Options = PalmSelector::Options;
  explicit PalmProbe(const Options& options) : options_(options) {}
  void attach(const ParameterArena& parameters, const LayerPartition& layers) override;
  at::Tensor scalar(const Output& output) const override;
  at::Tensor look(const ParameterArena& parameters, const Gradients& gradients) override;
  void reset() override;
  void remember(StateArchive& archive) override;

 private:
  Options options_;
  ByLayer by_layer_;
  at::Tensor steady_;   ///< ŝ, in the arena's layout
  at::Tensor weights_;  ///< double [layers]
};

}  // namespace gala
