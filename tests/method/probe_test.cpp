// The probes of PALM and LAW against the plain formulas, number by number.
#include "gala/method/probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "gala/base/error.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

using Numbers = std::vector<double>;

Numbers numbers_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// Three tensors in two layers, with values and gradients that come anew at every step.
class Probed : public testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    arena_.emplace(std::vector<NamedTensor>{
        {"a", at::randn({3, 4})}, {"b", at::randn({5})}, {"c", at::randn({2, 2, 2})}});
    layers_.layers = {{"ab", {0, 1}, 17}, {"c", {2}, 8}};
  }
  Gradients gradients(double scale) {
    Gradients made;
    for (std::size_t i = 0; i < 3; ++i) {
      made.tensors.push_back(at::randn(arena_->leaf(i).sizes()) * (i == 2 ? scale : 0.01));
    }
    return made;
  }
  Numbers layer_values(const std::vector<at::Tensor>& tensors, std::size_t layer) {
    Numbers all;
    for (const std::size_t t : layers_[layer].tensors) {
      const Numbers part = numbers_of(tensors[t]);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  std::vector<at::Tensor> values() {
    std::vector<at::Tensor> all;
    for (std::size_t i = 0; i < 3; ++i) all.push_back(arena_->view(arena_->values(), i));
    return all;
  }

  std::optional<ParameterArena> arena_;
  LayerPartition layers_;
};

TEST_F(Probed, ByPalm) {
  const auto probe = make_probe("palm:threshold=1,temperature=50,keep=0.25");
  probe->attach(*arena_, layers_);
  std::map<std::size_t, Numbers> steady = {{0, Numbers(17, 0.0)}, {1, Numbers(8, 0.0)}};
  Numbers weight(2, 0.0);
  // The second layer's gradient is small, then too large, then small again: in between it keeps its weight.
  for (const double scale : {0.01, 10.0, 0.02}) {
    const Gradients given = gradients(scale);
    const Numbers found = numbers_of(probe->look(*arena_, given));
    for (std::size_t l = 0; l < 2; ++l) {
      const Numbers g = layer_values(given.tensors, l), v = layer_values(values(), l);
      double size = 0;
      for (const double each : g) size += std::abs(each);
      if (size <= 1) {
        double sum = 0;
        for (std::size_t i = 0; i < g.size(); ++i) {
          const double s = std::abs(v[i] * g[i]);
          steady[l][i] = 0.25 * steady[l][i] + 0.75 * s;
          sum += (std::abs(s - steady[l][i]) + 1e-8) / (steady[l][i] + 1e-8);
        }
        weight[l] = sum / static_cast<double>(g.size());
      }
      EXPECT_NEAR(found[l], weight[l], 1e-4 * (1 + weight[l])) << scale << ' ' << l;
    }
    arena_->values().add_(0.1);
  }
  EXPECT_GT(weight[1], 0);
  probe->reset();
  const Numbers none = numbers_of(probe->look(*arena_, gradients(100)));
  EXPECT_EQ(none[1], 0);
}

/// A batch with a broken image has no gradient in numbers: nothing of it is remembered.
TEST_F(Probed, NothingIsLearnedOfAGradientThatIsNoNumber) {
  for (const char* spec : {"palm:threshold=1", "law"}) {
    const auto probe = make_probe(spec), other = make_probe(spec);
    probe->attach(*arena_, layers_);
    other->attach(*arena_, layers_);
    const Gradients first = gradients(0.01), last = gradients(0.02);
    probe->look(*arena_, first);
    other->look(*arena_, first);
    for (const double value : {std::nan(""), HUGE_VAL}) {
      Gradients broken = gradients(0.01);
      broken.tensors[0][1][2] = value;
      broken.tensors[2].fill_(value);
      probe->look(*arena_, broken);
    }
    const Numbers found = numbers_of(probe->look(*arena_, last));
    EXPECT_EQ(found, numbers_of(other->look(*arena_, last))) << spec;
    for (const double each : found) EXPECT_TRUE(std::isfinite(each)) << spec;
  }
}

TEST_F(Probed, ByLaw) {
  const auto probe = make_probe("law:power=0.5");
  probe->attach(*arena_, layers_);
  Numbers information(2, 0.0);
  for (const double scale : {0.3, 0.1, 0.2}) {
    const Gradients given = gradients(scale);
    const Numbers found = numbers_of(probe->look(*arena_, given));
    for (std::size_t l = 0; l < 2; ++l) {
      double square = 0;
      const Numbers g = layer_values(given.tensors, l);
      for (const double each : g) square += each * each;
      information[l] += square / static_cast<double>(g.size());
    }
    const double low = std::sqrt(information[0]), high = std::sqrt(information[1]);
    EXPECT_NEAR(found[0], 0, 1e-6);
    EXPECT_NEAR(found[1], std::sqrt((high - low) / (high - low + 1e-8)), 1e-5);
  }
}

/// Its own gradient and the last step's, which the published code never clears, are squared together.
TEST_F(Probed, ByLawWithTheGradientOfTheStepBefore) {
  const auto probe = make_probe("law:power=0.5,carried=yes");
  probe->attach(*arena_, layers_);
  Numbers information(2, 0.0);
  std::vector<at::Tensor> before;
  for (const double scale : {0.3, 0.1, 0.2}) {
    const Gradients given = gradients(scale), step = gradients(-2 * scale);
    const Numbers found = numbers_of(probe->look(*arena_, given));
    for (std::size_t l = 0; l < 2; ++l) {
      double square = 0;
      const Numbers g = layer_values(given.tensors, l);
      const Numbers last = before.empty() ? Numbers(g.size(), 0.0) : layer_values(before, l);
      for (std::size_t i = 0; i < g.size(); ++i) square += (g[i] + last[i]) * (g[i] + last[i]);
      information[l] += square / static_cast<double>(g.size());
    }
    const double low = std::min(std::sqrt(information[0]), std::sqrt(information[1]));
    const double high = std::max(std::sqrt(information[0]), std::sqrt(information[1]));
    for (std::size_t l = 0; l < 2; ++l) {
      const double share = (std::sqrt(information[l]) - low) / (high - low + 1e-8);
      EXPECT_NEAR(found[l], std::sqrt(share), 1e-5) << scale << ' ' << l;
    }
    probe->see(*arena_, step);
    before = step.tensors;
  }
  probe->reset();
  const auto fresh = make_probe("law:power=0.5,carried=yes");
  fresh->attach(*arena_, layers_);
  const Gradients last = gradients(1);
  EXPECT_EQ(numbers_of(probe->look(*arena_, last)), numbers_of(fresh->look(*arena_, last)));
}

/// A step's gradient without numbers is forgotten with the next.
TEST_F(Probed, LawCarriesNothingBrokenOn) {
  const auto probe = make_probe("law:carried=yes");
  probe->attach(*arena_, layers_);
  const Gradients sound = gradients(0.1);
  const Numbers first = numbers_of(probe->look(*arena_, sound));
  Gradients broken = gradients(0.1);
  broken.tensors[0].fill_(std::nan(""));
  probe->see(*arena_, broken);
  EXPECT_EQ(numbers_of(probe->look(*arena_, sound)), first);
  probe->see(*arena_, sound);
  for (const double each : numbers_of(probe->look(*arena_, sound))) {
    EXPECT_TRUE(std::isfinite(each));
  }
}

TEST_F(Probed, TheirScalars) {
  const at::Tensor logits = at::randn({4, 3});
  const at::Tensor palm = make_probe("palm:temperature=2")->scalar({{}, logits});
  const at::Tensor law = make_probe("law")->scalar({{}, logits});
  double expected_palm = 0, expected_law = 0;
  const Numbers z = numbers_of(logits);
  for (int n = 0; n < 4; ++n) {
    double warm = 0, plain = 0, best = -1e9;
    for (int c = 0; c < 3; ++c) {
      warm += std::exp(z[n * 3 + c] / 2);
      plain += std::exp(z[n * 3 + c]);
      best = std::max(best, z[n * 3 + c]);
    }
    for (int c = 0; c < 3; ++c) expected_palm -= (z[n * 3 + c] / 2 - std::log(warm)) / 4;
    expected_law -= (best - std::log(plain)) / 4;
  }
  EXPECT_NEAR(palm.item<double>(), expected_palm, 1e-5);
  EXPECT_NEAR(law.item<double>(), expected_law, 1e-5);
}

TEST(ProbedSelectors, RefuseValuesOutOfRange) {
  for (const char* spec :
       {"palm:temperature=0", "palm:threshold=-1", "palm:keep=2", "law:power=-1"}) {
    EXPECT_THROW(make_selector(spec, 0), ConfigError) << spec;
  }
}

/// The probe's gradient is another than the loss's: the update must be that of the loss alone.
TEST(Probe, LeavesTheUpdateAsItIs) {
  const MethodOptions probed{.loss = "entropy",
                             .select = "palm:threshold=1e9",
                             .optimizer = "adam:beta1=0,beta2=0",
                             .guard = "off"};
  MethodOptions plain = probed;
  plain.select = "all";
  plain.partition = Granularity::kTensor;
  plain.head = HeadRule::kFreeze;
  auto model = toy_model(), twin = toy_model();
  Adapter first(*model, probed), second(*twin, plain);
  const Answer a = first.answer(toy_images(1)), b = second.answer(toy_images(1));
  ASSERT_EQ(a.steps[0].layers.size(), b.steps[0].layers.size());
  for (std::size_t l = 0; l < a.steps[0].layers.size(); ++l) {
    EXPECT_EQ(a.steps[0].layers[l].update_norm, b.steps[0].layers[l].update_norm);
    EXPECT_GT(a.steps[0].layers[l].weight, 0);
  }
}

}  // namespace
}  // namespace gala
