#pragma once
#include "gala/model/layers.h"
#include "gala/model/model.h"

namespace gala {

/// A network that is a chain: images pass one stage after the other, the mean over all places of the
/// last maps gives the features, and a linear layer the logits. A pass can therefore begin in the
/// middle, where the stages before it did not change. The head counts as the stage behind the last.
class ChainModel : public Model {
 public:
  Output forward(const at::Tensor& images, bool update_statistics = true) final;
  Output forward_counted(const at::Tensor& images, const at::Tensor& counted) final;
  Output forward_again(const Output& before, const at::Tensor& images, int first_stage) final;

 protected:
  using Model::Model;
  virtual int stages() const = 0;
  /// The maps behind stage 0, 1, ..., given those before it.
  virtual at::Tensor run_stage(int stage, const at::Tensor& maps, const NormPass& pass) const = 0;

  Linear head_;

 private:
  Output run(int first_stage, at::Tensor maps, const NormPass& pass);
};

}  // namespace gala
