// The gradient of every loss against finite differences of its value, in every answer that it looks at.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>

#include "gala/base/random.h"
#include "gala/loss/loss.h"

namespace gala {
namespace {

/// By loss: specs that between them take every way through it.
const std::map<std::string_view, std::vector<const char*>> kSpecs = {
    {"pseudo_label", {"pseudo_label:beta=0.5", "pseudo_label:beta=0"}},
    {"shot", {"shot:beta=0.5", "shot:beta=0.3,theta=2", "shot:beta=1"}},
    {"information_maximisation",
     {"information_maximisation", "information_maximisation:epsilon=0.1"}},
    {"entropy", {"entropy", "entropy:below=0.8"}},
    {"generalised_cross_entropy",
     {"generalised_cross_entropy", "generalised_cross_entropy:q=0.2",
      "generalised_cross_entropy:q=1"}},
    {"soft_likelihood_ratio", {"soft_likelihood_ratio", "soft_likelihood_ratio:clip=0.6"}},
    {"consistency",
     {"consistency", "consistency:form=cross_entropy,weight=0.3",
      "consistency:per_class=0.02,all=yes", "shot:beta=0.5+consistency"}},
    {"teacher_cross_entropy",
     {"teacher_cross_entropy", "teacher_cross_entropy:look=view",
      "teacher_cross_entropy:form=symmetric,look=both"}},
    {"source_cross_entropy",
     {"source_cross_entropy", "source_cross_entropy:look=images,weight=0.7",
      "teacher_cross_entropy:form=symmetric,look=both+source_cross_entropy"}},
    {"marginal_entropy", {"marginal_entropy:looks=1", "marginal_entropy:looks=4"}},
};

/// What a loss is given in training: answers of random shape, with or without weights.
struct Scene {
  std::int64_t images, classes;
  at::Tensor student, view, teacher, source, weights, rows;

  Scene(Random& random, const LossNeeds& needs, at::ScalarType type, double size)
      : images(1 + static_cast<std::int64_t>(random.below(6))),
        classes(2 + static_cast<std::int64_t>(random.below(6))) {
    const auto logits = [&](std::int64_t count) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < count * classes; ++i) values.push_back(size * random.normal());
      return at::tensor(values, at::kDouble).view({count, classes}).to(type);
    };
    student = logits(needs.images ? images : images * needs.looks);
    teacher = logits(images);
    source = logits(images);
    if (random.below(3) != 0) {
      std::vector<double> drawn;
      for (std::int64_t i = 0; i < images; ++i) {
        drawn.push_back(random.below(3) == 0 ? 0 : random.uniform(0.1, 2));
      }
      weights = at::tensor(drawn, at::kDouble).to(type);
    }
    if (!needs.images || needs.view == SecondLook::kNone) return;
    if (needs.view == SecondLook::kCounted && weights.defined()) {
      rows = weights.ne(0).nonzero().squeeze(1);
    }
    view = logits(rows.defined() ? rows.size(0) : images);
  }

  LossTerms evaluate(const Loss& loss) const {
    const Output asked{{}, student}, again{{}, view.defined() ? view : student},
        taught{{}, teacher}, anchored{{}, source};
    const LossNeeds needs = loss.needs();
    return loss.evaluate({.student = asked,
                          .teacher = needs.teacher ? &taught : nullptr,
                          .source = needs.source ? &anchored : nullptr,
                          .view = needs.view != SecondLook::kNone ? &again : nullptr,
                          .weights = weights,
                          .rows = rows});
  }
  /// The answers that have a gradient.
  std::vector<at::Tensor*> leaves() {
    std::vector<at::Tensor*> all{&student};
    if (view.defined()) all.push_back(&view);
    return all;
  }
};

class EveryLoss : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryLoss, HasTheSlopeOfItsValue) {
  const auto specs = kSpecs.find(GetParam());
  ASSERT_NE(specs, kSpecs.end()) << "a loss without a check of its gradient";
  constexpr double kStep = 1e-5;
  double steepest = 0;
  for (const char* spec : specs->second) {
    const auto loss = make_loss(spec);
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed, "loss");
      Scene scene(random, loss->needs(), at::kDouble, /*size=*/2);
      for (at::Tensor* leaf : scene.leaves()) leaf->requires_grad_();
      const LossTerms terms = scene.evaluate(*loss);
      EXPECT_FALSE(terms.confident.requires_grad());
      if (terms.value.requires_grad()) terms.value.backward();
      for (at::Tensor* leaf : scene.leaves()) {
        const at::Tensor gradient = leaf->grad(), here = leaf->detach().clone();
        double* values = here.mutable_data_ptr<double>();
        *leaf = here;
        const at::Tensor found = gradient.defined() ? gradient.contiguous() : at::zeros_like(here);
        for (std::int64_t i = 0; i < here.numel(); ++i) {
          const auto value_at = [&, before = values[i]](double by) {
            values[i] = before + by;
            const auto value = scene.evaluate(*loss).value.item<double>();
            values[i] = before;
            return value;
          };
          const double slope = (value_at(kStep) - value_at(-kStep)) / (2 * kStep);
          ASSERT_NEAR(found.const_data_ptr<double>()[i], slope, 2e-8 * (1 + std::abs(slope)))
              << spec << " seed " << seed << " entry " << i;
          steepest = std::max(steepest, std::abs(slope));
        }
      }
    }
  }
  EXPECT_GT(steepest, 1e-2) << "nothing was to be seen";
}

/// Answers of a network that went far away, or that knows nothing at all.
TEST_P(EveryLoss, StaysFiniteForExtremeAnswers) {
  for (const char* spec : kSpecs.at(GetParam())) {
    const auto loss = make_loss(spec);
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      for (const double size : {0.0, 1e-30, 1e4, 1e30}) {
        Random random(seed, "extreme");
        Scene scene(random, loss->needs(), at::kFloat, size);
        for (at::Tensor* leaf : scene.leaves()) leaf->requires_grad_();
        const LossTerms terms = scene.evaluate(*loss);
        EXPECT_TRUE(std::isfinite(terms.value.item<double>())) << spec << " " << size;
        if (!terms.value.requires_grad()) continue;
        terms.value.backward();
        for (at::Tensor* leaf : scene.leaves()) {
          if (!leaf->grad().defined()) continue;
          EXPECT_TRUE(leaf->grad().isfinite().all().item<bool>()) << spec << " " << size;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Loss, EveryLoss, testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const auto& entry : loss_registry()) names.push_back(entry.name);
                           return names;
                         }()),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace gala
