#pragma once
#include "gala/optim/sweep_kernels.h"

namespace gala {

/// One step of SGD for one layer; the momentum starts at zero.
///   b ← μ b + g,  u = -η b,  or with Nesterov  u = -η (g + μ b)
struct SgdRule {
  static constexpr int kMoments = 1;
  float rate, momentum, weight_decay;
  bool nesterov;

  template <class T>
  GALA_ON_BOTH void advance(const T& gradient, const T& value, T* moments) const {
    moments[0] = momentum * moments[0] + (gradient + weight_decay * value);
  }
  template <class T>
  GALA_ON_BOTH T update(const T& gradient, const T& value, const T* moments) const {
    if (!nesterov) return -rate * moments[0];
    return -rate * ((gradient + weight_decay * value) + momentum * moments[0]);
  }
  /// Whether the parameters themselves are looked at; else a zero stands for them.
  GALA_ON_BOTH bool reads_values() const { return weight_decay != 0; }
};

GALA_EXTERN_SWEEP(SgdRule);

}  // namespace gala
