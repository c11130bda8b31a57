#pragma once
#include <cmath>

#include "gala/optim/sweep_kernels.h"

namespace gala {

/// One step of Adam for one layer; both moments start at zero.
///   m ← β₁ m + (1-β₁) g,  v ← β₂ v + (1-β₂) g²,  u = -η/(1-β₁ᵗ) · m / (√v / √(1-β₂ᵗ) + ε)
struct AdamRule {
  static constexpr int kMoments = 2;
  float beta1, beta2, epsilon, weight_decay;
  float fresh1, fresh2;  ///< 1-β₁ and 1-β₂, rounded once: in float32, 1-0.999 is off by 1e-5
  float step_size;       ///< η / (1-β₁ᵗ)
  float second_correction;  ///< 1 / √(1-β₂ᵗ)

  template <class T>
  GALA_ON_BOTH void advance(const T& gradient, const T& value, T* moments) const {
    const T g = gradient + weight_decay * value;
    moments[0] = beta1 * moments[0] + fresh1 * g;
    moments[1] = beta2 * moments[1] + fresh2 * (g * g);
  }
  template <class T>
  GALA_ON_BOTH T update(const T&, const T&, const T* moments) const {
    using std::sqrt;
    return -step_size * (moments[0] / (second_correction * sqrt(moments[1]) + epsilon));
  }
  /// Whether the parameters themselves are looked at; else a zero stands for them.
  GALA_ON_BOTH bool reads_values() const { return weight_decay != 0; }
};

GALA_EXTERN_SWEEP(AdamRule);

}  // namespace gala
