#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "gala/tensor/state_archive.h"

namespace gala {

/// A moving mean of answers, [classes] on their device, written in place.
class ClassMean {
 public:
  /// `even`: it begins with every class alike; else with the first answers it takes in.
  ClassMean(double keep, bool even) : keep_(keep), even_(even) {}

  /// Makes it, where this is the first batch.
  void prepare(const at::Tensor& probabilities);
  /// Cosine between the mean and each answer, [N]; where there is no mean yet, zeros.
  at::Tensor cosine(const at::Tensor& probabilities) const;
  /// Takes in the mean of the answers with weights [N] of 0 or 1; where none has, or one is not
  /// finite, it stays as it is.
  void take(const at::Tensor& probabilities, const at::Tensor& kept);

  void reset();
  void remember(const std::string& name, StateArchive& archive);

 private:
  double keep_;
  bool even_;
  at::Tensor mean_;   ///< undefined before the first batch
  at::Tensor known_;  ///< 1 where there is a mean, else 0
};

}  // namespace gala
