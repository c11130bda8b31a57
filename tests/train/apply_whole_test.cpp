// The update of the whole arena at once against the kernel that goes tensor by tensor.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "gala/optim/adam.h"
#include "gala/optim/sgd.h"

namespace gala {
namespace {

struct Bench {
  // Sizes that do not fill the arena's alignment.
  std::vector<NamedTensor> named = {
      {"a", at::randn({3, 5})}, {"b", at::randn({7})}, {"c", at::randn({2, 2, 3})}};
  Gradients gradients{{at::randn({3, 5}), at::Tensor(), at::randn({2, 2, 3})}};
  LayerPartition layers{{{"all", {0, 1, 2}, 34}}};
};

template <class Rule>
void expect_same_as_the_kernel(const Rule& rule, DisplacementForm form) {
  at::manual_seed(1);
  const c10::NoGradGuard no_grad;
  Bench bench;
  ParameterArena kernel(bench.named), whole(bench.named);
  MomentBuffers<Rule> kernel_moments, whole_moments;
  for (int k = 0; k < Rule::kMoments; ++k) {
    kernel_moments[k] = kernel.make_buffer();
    for (std::size_t t = 0; t < 3; ++t) {
      kernel.view(kernel_moments[k], t).copy_(at::rand_like(bench.named[t].tensor));
    }
    whole_moments[k] = kernel_moments[k].clone();
  }
  Displacement kernel_shift(kernel, form, Anchor::kPrevious),
      whole_shift(whole, form, Anchor::kPrevious);
  const std::vector<Rule> rules = {rule};
  constexpr double kWeight = 0.5;
  const std::vector<double> weights = {kWeight};
  const auto chunks = make_chunks(kernel, bench.layers);
  apply_on_cpu(
      SweepContext<Rule>{bench.gradients, kernel, bench.layers, rules, kernel_moments, true},
      chunks, kernel_shift, weights);
  apply_whole(SweepContext<Rule>{bench.gradients, whole, bench.layers, rules, whole_moments, true},
              whole_shift, static_cast<float>(kWeight));
  EXPECT_FALSE(kernel.view(kernel.values(), 0).equal(bench.named[0].tensor));
  EXPECT_TRUE(at::allclose(whole.values(), kernel.values(), 1e-6, 1e-7));
  for (int k = 0; k < Rule::kMoments; ++k) {
    EXPECT_TRUE(at::allclose(whole_moments[k], kernel_moments[k], 1e-6, 1e-7));
  }
  EXPECT_TRUE(at::allclose(whole_shift.buffer(), kernel_shift.buffer(), 1e-6, 1e-7));
  EXPECT_TRUE(at::allclose(whole_shift.recent(), kernel_shift.recent(), 1e-6, 1e-7));
}

TEST(ApplyWhole, MovesAsTheKernelDoes) {
  for (const auto form : {DisplacementForm::kSum, DisplacementForm::kDifference}) {
    expect_same_as_the_kernel(SgdRule{0.1F, 0.9F, 0.01F, true}, form);
    expect_same_as_the_kernel(SgdRule{0.1F, 0.9F, 0.01F, false}, form);
    expect_same_as_the_kernel(AdamRule{0.9F, 0.99F, 1e-8F, 0.01F, 0.1F, 0.01F, 0.002F, 1.5F}, form);
  }
}

}  // namespace
}  // namespace gala
