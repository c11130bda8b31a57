#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "gala/layer/archive.h"

namespace gala {

/// How many images of a stream are worth one that is drawn by itself: 1 where neighbours are no more alike in class
/// than chance has it, large where classes come in clumps. It is the design effect of the answers, over blocks of
/// at least 64 of them:
///   d = Σ_c (n_c - n f_c)² / (n (1 - Σ_c f_c²)),
/// with n_c the answers of class c among the n of a block and f_c its share in the long run (a moving mean over 2,000
/// answers, which begins with all classes alike). Independent answers give 1 on average, n alike give about n. It
/// rises at once to half of what a block says, and sinks by a fifth a block.
class LabelSpread {
 public:
  explicit LabelSpread(std::int64_t classes);

  /// Takes answers in; those below 0 are no class.
  void take(std::span<const std::int64_t> predictions);
  double value() const { return value_; }

  void reset();
  void remember(Archive& archive);

 private:
  std::vector<double> shares_;        ///< f
  std::vector<std::int64_t> counts_;  ///< of the block at hand
  std::int64_t taken_ = 0;            ///< answers in it
  double value_ = 1;
};

}  // namespace gala
