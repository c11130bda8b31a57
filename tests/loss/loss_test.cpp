#include "gala/loss/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gala/base/error.h"
#include "gala/loss/information_maximisation.h"
#include "gala/loss/pseudo_label.h"
#include "gala/loss/shot.h"
#include "gala/loss/terms.h"

namespace gala {
namespace {

struct Evaluation {
  double value;
  at::Tensor gradient;
  double confident;
};

Evaluation evaluate(const std::string& spec, const at::Tensor& logits,
                    const at::Tensor& weights = {}) {
  const at::Tensor leaf = logits.clone().requires_grad_();
  const Output output{.features = {}, .logits = leaf};
  const LossTerms terms = make_loss(spec)->evaluate({.student = output, .weights = weights});
  EXPECT_FALSE(terms.confident.requires_grad());
  terms.value.backward();
  return {terms.value.item<double>(), leaf.grad(), terms.confident.item<double>()};
}

std::string message_of(const std::string& spec) {
  try {
    make_loss(spec);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

/// Some samples confident at 0.9 and some not, none so near that a small step moves it across.
at::Tensor mixed_logits() {
  at::manual_seed(12);
  return at::randn({12, 5}, at::kDouble) * 5;
}

/// Twelve samples of which none is confident at 0.9.
at::Tensor unsure_logits() {
  return mixed_logits() * 0.03;
}

TEST(Losses, HaveTheSlopeOfTheirValues) {
  const at::Tensor logits = mixed_logits();
  const at::Tensor confidence = std::get<0>(logits.softmax(1).max(1));
  ASSERT_GT((confidence - 0.9).abs().min().item<double>(), 1e-3);
  ASSERT_GT((confidence > 0.9).sum().item<int>(), 2);
  ASSERT_LT((confidence > 0.9).sum().item<int>(), 10);
  constexpr double kStep = 1e-5;
  for (const std::string spec : {"entropy", "information_maximisation", "pseudo_label", "shot"}) {
    const Evaluation here = evaluate(spec, logits);
    for (std::int64_t n = 0; n < logits.size(0); ++n) {
      for (std::int64_t c = 0; c < logits.size(1); ++c) {
        at::Tensor above = logits.clone(), below = logits.clone();
        above[n][c] += kStep;
        below[n][c] -= kStep;
        const double slope =
            (evaluate(spec, above).value - evaluate(spec, below).value) / (2 * kStep);
        EXPECT_NEAR(here.gradient[n][c].item<double>(), slope, 1e-8)
            << spec << " " << n << " " << c;
      }
    }
  }
}

TEST(PseudoLabel, SendsNoGradientThroughLabelsOrMask) {
  const at::Tensor logits = mixed_logits();
  const at::Tensor probabilities = logits.softmax(1);
  const auto [confidence, labels] = probabilities.max(1);
  const at::Tensor kept = (confidence > 0.9).to(at::kDouble);
  const at::Tensor one_hot = at::zeros_like(logits).scatter_(1, labels.unsqueeze(1), 1.0);
  const at::Tensor expected = (probabilities - one_hot) * kept.unsqueeze(1) / kept.sum();
  EXPECT_TRUE(at::allclose(evaluate("pseudo_label", logits).gradient, expected, 0, 1e-14));
}

TEST(PseudoLabel, IsZeroWithZeroGradientWhenNoSampleIsConfident) {
  const Evaluation nothing = evaluate("pseudo_label", unsure_logits());
  EXPECT_EQ(nothing.value, 0.0);
  EXPECT_EQ(nothing.confident, 0.0);
  EXPECT_TRUE(nothing.gradient.eq(0).all().item<bool>());
  const at::Tensor single = at::zeros({1, 4}, at::kFloat);
  EXPECT_TRUE(evaluate("pseudo_label", single).gradient.eq(0).all().item<bool>());
}

TEST(PseudoLabel, CountsOnlySamplesAboveBeta) {
  // Two classes with a probability of exactly one half each.
  const at::Tensor even = at::zeros({3, 2}, at::kDouble);
  EXPECT_EQ(evaluate("pseudo_label:beta=0.5", even).confident, 0.0);
  EXPECT_EQ(evaluate("pseudo_label:beta=0.49", even).confident, 3.0);
  EXPECT_NEAR(evaluate("pseudo_label:beta=0.49", even).value, std::log(2.0), 1e-15);
  EXPECT_EQ(evaluate("pseudo_label:beta=1", at::eye(3, at::kDouble) * 1e4).confident, 0.0);
}

TEST(PseudoLabel, IsTheMeanOverAllWhenAllAreConfident) {
  const at::Tensor logits = at::eye(4, at::kDouble) * 6;
  const Evaluation all = evaluate("pseudo_label", logits);
  EXPECT_EQ(all.confident, 4.0);
  EXPECT_NEAR(all.value, std::log1p(3 * std::exp(-6.0)), 1e-14);
}

TEST(Losses, TakeWeightsOfOneForNoWeights) {
  const at::Tensor logits = at::randn({6, 5}, at::kDouble) * 3, ones = at::ones({6}, at::kDouble);
  for (const char* spec :
       {"entropy", "pseudo_label:beta=0.3", "shot:beta=0.3", "information_maximisation",
        "generalised_cross_entropy", "soft_likelihood_ratio"}) {
    const Evaluation plain = evaluate(spec, logits), weighted = evaluate(spec, logits, ones);
    EXPECT_NEAR(weighted.value, plain.value, 1e-12) << spec;
    EXPECT_TRUE(at::allclose(weighted.gradient, plain.gradient, 0, 1e-12)) << spec;
    EXPECT_EQ(weighted.confident, plain.confident) << spec;
  }
}

TEST(Losses, GiveNoGradientToSamplesOfWeightZero) {
  const at::Tensor logits = at::randn({6, 5}, at::kDouble) * 3;
  const at::Tensor weights = at::tensor({0.0, 1.0, 2.0, 0.0, 0.5, 1.0}, at::kDouble);
  for (const char* spec :
       {"entropy", "pseudo_label:beta=0", "shot:beta=0", "information_maximisation",
        "generalised_cross_entropy", "soft_likelihood_ratio"}) {
    const at::Tensor gradient = evaluate(spec, logits, weights).gradient.abs().sum(1);
    EXPECT_EQ(gradient[0].item<double>(), 0) << spec;
    EXPECT_EQ(gradient[3].item<double>(), 0) << spec;
    EXPECT_GT(gradient[2].item<double>(), 0) << spec;
    const Evaluation nothing = evaluate(spec, logits, at::zeros({6}, at::kDouble));
    EXPECT_EQ(nothing.value, 0) << spec;
    EXPECT_TRUE(nothing.gradient.eq(0).all().item<bool>()) << spec;
  }
}

/// The mean of weight times loss: by hand, from the losses of the samples one by one.
TEST(Losses, WeighEverySampleByItself) {
  const at::Tensor logits = at::randn({4, 5}, at::kDouble) * 3;
  const std::vector<double> weights{0.5, 0, 3, 1};
  for (const char* spec :
       {"entropy", "pseudo_label:beta=0", "generalised_cross_entropy", "soft_likelihood_ratio"}) {
    double expected = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
      expected +=
          weights[static_cast<std::size_t>(i)] * evaluate(spec, logits.narrow(0, i, 1)).value / 4;
    }
    EXPECT_NEAR(evaluate(spec, logits, at::tensor(weights, at::kDouble)).value, expected, 1e-12);
  }
}

TEST(Shot, LosesOnlyItsPseudoLabelTermWhenNoSampleIsConfident) {
  const Evaluation shot = evaluate("shot", unsure_logits());
  const Evaluation rest = evaluate("information_maximisation", unsure_logits());
  EXPECT_EQ(shot.confident, 0.0);
  EXPECT_EQ(shot.value, rest.value);
  EXPECT_TRUE(shot.gradient.equal(rest.gradient));
}

TEST(Losses, TakeTheirClosedFormsForEvenAnswers) {
  const at::Tensor even = at::zeros({6, 8}, at::kDouble);
  EXPECT_NEAR(evaluate("entropy", even).value, std::log(8.0), 1e-14);
  const double diversity = -std::log(1.0 / 8 + 1e-5);
  EXPECT_NEAR(evaluate("information_maximisation", even).value, std::log(8.0) - diversity, 1e-14);
  EXPECT_EQ(evaluate("entropy", even).confident, 6.0);
  EXPECT_EQ(evaluate("information_maximisation", even).confident, 6.0);
}

TEST(Losses, StayFiniteForExtremeLogits) {
  at::manual_seed(13);
  const at::Tensor signs = at::where(at::rand({9, 6}) > 0.5, 1.0, -1.0).to(at::kFloat);
  for (const std::string spec : {"entropy", "information_maximisation", "pseudo_label", "shot"}) {
    for (const at::Tensor& logits :
         {signs * 1e4, at::eye(6, at::kFloat) * 1e4, at::eye(6, at::kFloat) * -1e4,
          at::full({3, 6}, 1e4F), at::full({3, 6}, -1e4F)}) {
      const Evaluation extreme = evaluate(spec, logits);
      EXPECT_TRUE(std::isfinite(extreme.value)) << spec;
      EXPECT_TRUE(extreme.gradient.isfinite().all().item<bool>()) << spec;
    }
  }
}

TEST(Losses, TakeABatchOfOne) {
  const at::Tensor logits = mixed_logits().slice(0, 0, 1);
  for (const std::string spec : {"entropy", "information_maximisation", "pseudo_label", "shot"}) {
    const Evaluation one = evaluate(spec, logits);
    EXPECT_TRUE(std::isfinite(one.value)) << spec;
    EXPECT_EQ(one.gradient.sizes(), logits.sizes());
  }
  // One answer is its own mean: what is left of H(p) - H(mean p) comes from epsilon.
  EXPECT_NEAR(evaluate("information_maximisation:epsilon=1e-12", logits).value, 0.0, 1e-11);
}

TEST(Losses, CarryNotANumberThrough) {
  at::Tensor logits = mixed_logits();
  logits[3][1] = std::nan("");
  for (const std::string spec : {"entropy", "information_maximisation", "pseudo_label", "shot"}) {
    EXPECT_FALSE(std::isfinite(evaluate(spec, logits).value)) << spec;
  }
}

TEST(Losses, SayWhetherTheHeadAdapts) {
  EXPECT_TRUE(make_loss("pseudo_label")->adapts_head());
  EXPECT_TRUE(make_loss("entropy")->adapts_head());
  EXPECT_FALSE(make_loss("shot")->adapts_head());
  EXPECT_FALSE(make_loss("information_maximisation")->adapts_head());
}

TEST(Losses, RefuseOptionsOutOfRange) {
  EXPECT_EQ(message_of("pseudo_label:beta=1.5"),
            "loss pseudo_label: beta must lie in [0, 1], not 1.5");
  EXPECT_EQ(message_of("pseudo_label:beta=-0.1"),
            "loss pseudo_label: beta must lie in [0, 1], not -0.1");
  EXPECT_EQ(message_of("shot:beta=2"), "loss shot: beta must lie in [0, 1], not 2");
  EXPECT_EQ(message_of("shot:theta=-1"), "loss shot: theta must not be negative, not -1");
  EXPECT_EQ(message_of("information_maximisation:epsilon=0"),
            "loss information_maximisation: epsilon must be above 0, not 0");
  EXPECT_THROW(PseudoLabelLoss({.beta = std::nan("")}), ConfigError);
  EXPECT_THROW(ShotLoss({.beta = 0.9, .theta = std::nan("")}), ConfigError);
  EXPECT_THROW(InformationMaximisationLoss({.epsilon = std::nan("")}), ConfigError);
  for (const char* spec : {"pseudo_label:beta=0", "pseudo_label:beta=1", "shot:theta=0"}) {
    EXPECT_EQ(message_of(spec), "no error");
  }
}

TEST(Losses, RefuseUnknownWords) {
  EXPECT_EQ(
      message_of("pseudolabel"),
      "unknown loss \"pseudolabel\" (did you mean \"pseudo_label\"? known: pseudo_label, shot, "
      "information_maximisation, entropy, generalised_cross_entropy, soft_likelihood_ratio, "
      "consistency, teacher_cross_entropy, source_cross_entropy, marginal_entropy)");
  EXPECT_EQ(message_of("shot:thea=1"),
            "loss shot has no option \"thea\" (did you mean \"theta\"? known: beta, theta)");
  EXPECT_NE(message_of("entropy:beta=0.9"), "no error");
}

/// -Σ p log q of two rows of logits.
double cross_of(const at::Tensor& p, const at::Tensor& q) {
  double sum = 0;
  const at::Tensor probability = p.softmax(0), log_q = q.log_softmax(0);
  for (std::int64_t c = 0; c < p.size(0); ++c) {
    sum -= probability[c].item<double>() * log_q[c].item<double>();
  }
  return sum;
}

TEST(Consistency, ComparesTheTwoAnswersOfImagesThatWereSeenTwice) {
  at::manual_seed(6);
  const at::Tensor clean = at::randn({5, 3}, at::kDouble).requires_grad_();
  const at::Tensor again = at::randn({2, 3}, at::kDouble).requires_grad_();
  const at::Tensor weights = at::tensor({0.0, 2.0, 0.0, 0.0, 3.0}, at::kDouble);
  const Output student{{}, clean}, view{{}, again};
  const LossInput input{
      .student = student, .view = &view, .weights = weights, .rows = at::tensor({1, 4})};
  const auto loss = make_loss("consistency:weight=0.5");
  EXPECT_EQ(loss->needs().view, SecondLook::kCounted);
  const LossTerms terms = loss->evaluate(input);
  const auto both = [&](int n, int k) {
    return 0.5 * cross_of(clean[n], again[k]) + 0.5 * cross_of(again[k], clean[n]);
  };
  EXPECT_NEAR(terms.value.item<double>(), 0.5 * (2 * both(1, 0) + 3 * both(4, 1)) / 5, 1e-9);
  terms.value.backward();
  EXPECT_GT(clean.grad()[1].abs().max().item<double>(), 0);
  EXPECT_GT(again.grad()[1].abs().max().item<double>(), 0);
  EXPECT_EQ(clean.grad()[0].abs().max().item<double>(), 0);
}

TEST(Consistency, IsWeighedByTheNumberOfClasses) {
  const at::Tensor clean = at::randn({4, 3}, at::kDouble), again = at::randn({4, 3}, at::kDouble);
  const Output student{{}, clean}, view{{}, again};
  const auto loss = make_loss("consistency:form=cross_entropy,per_class=0.01,all=yes");
  EXPECT_EQ(loss->needs().view, SecondLook::kAll);
  double expected = 0;
  for (int n = 0; n < 4; ++n) expected += 0.03 * cross_of(clean[n], again[n]) / 4;
  EXPECT_NEAR(loss->evaluate({.student = student, .view = &view}).value.item<double>(), expected,
              1e-9);
  EXPECT_NE(message_of("consistency:weight=-1"), "no error");
}

TEST(TeacherCrossEntropy, ComparesWithTheTeacher) {
  const at::Tensor student_logits = at::randn({4, 3}, at::kDouble);
  const at::Tensor teacher_logits = at::randn({4, 3}, at::kDouble);
  const Output student{{}, student_logits}, teacher{{}, teacher_logits};
  const auto loss = make_loss("teacher_cross_entropy");
  EXPECT_TRUE(loss->needs().teacher);
  double expected = 0;
  for (int n = 0; n < 4; ++n) expected += cross_of(teacher_logits[n], student_logits[n]) / 4;
  const LossInput input{.student = student, .teacher = &teacher};
  EXPECT_NEAR(loss->evaluate(input).value.item<double>(), expected, 1e-9);
}

TEST(TeacherCrossEntropy, ComparesTheLookItIsAskedFor) {
  at::manual_seed(6);
  const at::Tensor seen = at::randn({4, 3}, at::kDouble),
                   otherwise = at::randn({4, 3}, at::kDouble),
                   taught = at::randn({4, 3}, at::kDouble);
  const Output student{{}, seen}, view{{}, otherwise}, teacher{{}, taught};
  const LossInput input{.student = student, .teacher = &teacher, .source = &teacher, .view = &view};
  const auto value = [&](const char* spec) {
    return make_loss(spec)->evaluate(input).value.item<double>();
  };
  double images = 0, viewed = 0;
  for (int n = 0; n < 4; ++n) {
    images += cross_of(taught[n], seen[n]) / 4;
    viewed += cross_of(taught[n], otherwise[n]) / 4;
  }
  EXPECT_NEAR(value("teacher_cross_entropy:look=view"), viewed, 1e-9);
  EXPECT_NEAR(value("teacher_cross_entropy:look=both"), (images + viewed) / 2, 1e-9);
  EXPECT_NEAR(value("source_cross_entropy:weight=3"), 3 * viewed, 1e-9);
  EXPECT_NEAR(value("source_cross_entropy:look=images"), images, 1e-9);
  EXPECT_FALSE(make_loss("teacher_cross_entropy:look=view")->needs().images);
  const LossNeeds both = make_loss("teacher_cross_entropy+source_cross_entropy")->needs();
  EXPECT_TRUE(both.images && both.teacher && both.source);
  EXPECT_EQ(both.view, SecondLook::kAll);
  EXPECT_NE(message_of("source_cross_entropy:weight=-1"), "no error");
}

TEST(MarginalEntropy, IsThatOfTheMeanAnswerToAllLooks) {
  at::manual_seed(7);
  const at::Tensor logits = (at::randn({6, 3}, at::kDouble) * 3).requires_grad_();
  const Output looks{{}, logits};
  const auto loss = make_loss("marginal_entropy:looks=3");
  EXPECT_EQ(loss->needs().looks, 3);
  const LossTerms terms = loss->evaluate({.student = looks, .view = &looks});
  double expected = 0;
  for (int n = 0; n < 2; ++n) {
    double mean[3] = {};
    for (int look = 0; look < 3; ++look) {
      const at::Tensor p = logits[2 * look + n].softmax(0);
      for (int c = 0; c < 3; ++c) mean[c] += p[c].item<double>() / 3;
    }
    for (const double p : mean) expected -= p * std::log(p) / 2;
  }
  EXPECT_NEAR(terms.value.item<double>(), expected, 1e-9);
  EXPECT_EQ(terms.confident.item<double>(), 2);
  EXPECT_NE(message_of("marginal_entropy:looks=0"), "no error");
  EXPECT_NE(message_of("marginal_entropy+entropy").find("stands alone"), std::string::npos);
}

TEST(Entropy, CanKeepToImagesItIsSureOf) {
  const at::Tensor logits = mixed_logits();
  double sum = 0, kept = 0;
  for (int n = 0; n < 12; ++n) {
    const double entropy = cross_of(logits[n], logits[n]);
    if (entropy < 0.4) sum += entropy, ++kept;
  }
  ASSERT_GT(kept, 1);
  ASSERT_LT(kept, 12);
  const Evaluation found = evaluate("entropy:below=0.4", logits);
  EXPECT_NEAR(found.value, sum / kept, 1e-9);
  EXPECT_EQ(found.confident, kept);
  EXPECT_EQ(evaluate("entropy:below=1e-9", logits).value, 0);
}

TEST(Losses, AddUp) {
  const at::Tensor logits = mixed_logits();
  const Evaluation one = evaluate("shot", logits),
                   other = evaluate("soft_likelihood_ratio", logits);
  const Evaluation sum = evaluate("shot+soft_likelihood_ratio", logits);
  EXPECT_NEAR(sum.value, one.value + other.value, 1e-9);
  EXPECT_TRUE(at::allclose(sum.gradient, one.gradient + other.gradient));
  EXPECT_EQ(sum.confident, one.confident);
  EXPECT_FALSE(make_loss("shot+entropy")->adapts_head());
  EXPECT_NE(message_of("shot+nothing"), "no error");
  EXPECT_NE(message_of("none"), "no error");
}

}  // namespace
}  // namespace gala
