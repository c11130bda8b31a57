#pragma once
#include <array>
#include <string_view>

#include "gala/loss/loss.h"

namespace gala {

/// How two answers p (to the image) and q (to what it looks like otherwise) are compared.
enum class Comparison {
  kCrossEntropy,  ///< -Σ_c p_c log q_c
  kSymmetric      ///< half of -Σ_c p_c log q_c - Σ_c q_c log p_c
};
constexpr std::array<std::string_view, 2> enum_names(Comparison) {
  return {"cross_entropy", "symmetric"};
}

/// -Σ_c p_c log q_c of each sample, or half of it and the same turned round, [N].
at::Tensor compare(const at::Tensor& p_logits, const at::Tensor& q_logits, Comparison form);

/// Consistency between the answer to an image and that to the same image seen otherwise (`--view`);
/// gradients flow through both. ROID (Marsden et al. 2024) compares symmetrically and looks again only at
/// the images that count, whose batch statistics are then their own; LAW (Park et al. 2024) and PALM
/// (Maharana et al. 2025) compare by cross-entropy over all images, times 0.01 C.
class ConsistencyLoss : public Loss {
 public:
  struct Options {
    Comparison form = Comparison::kSymmetric;
    double weight = 1;
    double per_class = 0;
    bool all = false;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("form", &Options::form, "how the two answers are compared");
      option("weight", &Options::weight, "of this term");
      option("per_class", &Options::per_class,
             "where above 0, the weight is this times the number of classes");
      option("all", &Options::all,
             "look again at all images, not only at those that count in the loss");
    }
  };

  explicit ConsistencyLoss(const Options& options);
  LossNeeds needs() const override {
    return {.view = options_.all ? SecondLook::kAll : SecondLook::kCounted};
  }
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
