#pragma once
#include <cstdint>

#include "gala/method/readout.h"

namespace gala {

/// LAME (Boudiaf et al. 2022): the parameters stay, and the answers of a batch are smoothed between
/// neighbours. With u = -log p, an affinity K of the normalised features, and y = p at first,
///   y ← softmax(-u + K y), until Σ y (u - K y + log y) stays within 1e-8 of itself.
/// K is exp(-d² / 2σ²) with σ the mean distance to the k-th nearest, the image itself being the first, as in the
/// published code. It helps where neighbours in time are alike, and harms where they are not. The
/// answers are probabilities; images whose answer is not finite take no part.
class LameReadout : public Readout {
 public:
  struct Options {
    std::int64_t neighbours = 5;
    std::int64_t steps = 100;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("neighbours", &Options::neighbours, "k: how near is near");
      option("steps", &Options::steps, "at most");
    }
  };
  explicit LameReadout(const Options& options);
  at::Tensor correct(const Output& output) override;

 private:
  Options options_;
};

}  // namespace gala
