#pragma once
#include <array>
#include <string_view>

#include "gala/loss/consistency.h"
#include "gala/loss/loss.h"

namespace gala {

/// Which of the student's answers a teacher's are compared with.
enum class LookAt { kImages, kView, kBoth };
constexpr std::array<std::string_view, 3> enum_names(LookAt) {
  return {"images", "view", "both"};
}

/// What a loss with that look needs.
LossNeeds needs_of(LookAt look);
/// The comparison of each image, [N]; for both looks their mean.
at::Tensor compare_looks(const at::Tensor& answers, const LossInput& input, LookAt look,
                         Comparison form);

/// The mean over images of the cross-entropy between a teacher's answer t and the student's p:
/// -Σ_c t_c log p_c, or symmetrically half of that and half of -Σ_c p_c log t_c. CoTTA (Wang et al. 2022)
/// has the first on CIFAR and the second on ImageNet-C. RoTTA (Yuan et al. 2023) shows the student the images by
/// the view alone, PeTTA (Hoang et al. 2024) both ways.
class TeacherCrossEntropyLoss : public Loss {
 public:
  struct Options {
    Comparison form = Comparison::kCrossEntropy;
    LookAt look = LookAt::kImages;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("form", &Options::form, "how the two answers are compared");
      option("look", &Options::look, "which of the student's answers are compared");
    }
  };

  explicit TeacherCrossEntropyLoss(const Options& options) : options_(options) {}
  LossNeeds needs() const override {
    LossNeeds needs = needs_of(options_.look);
    needs.teacher = true;
    return needs;
  }
  LossTerms evaluate(const LossInput& input) const override;

 private:
  Options options_;
};

}  // namespace gala
