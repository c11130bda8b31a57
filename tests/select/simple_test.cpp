#include <gtest/gtest.h>

#include <map>

#include "gala/base/error.h"
#include "gala/select/fixed.h"
#include "gala/select/selector.h"
#include "tests/select/proposal_maker.h"

namespace gala {
namespace {

using Weights = std::vector<double>;

ProposalMaker three_layers() {
  return ProposalMaker({layer_sums(1), layer_sums(2), layer_sums(3)});
}

TEST(All, MovesEverything) {
  EXPECT_EQ(make_selector({"all", {}}, 0)->select(three_layers().at_step(3)), (Weights{1, 1, 1}));
}

TEST(None, MovesNothingAndSaysSo) {
  const auto selector = make_selector({"none", {}}, 0);
  EXPECT_EQ(selector->select(three_layers().at_step(3)), (Weights{0, 0, 0}));
  EXPECT_TRUE(selector->idle());
}

TEST(Fixed, MovesTheNamedLayers) {
  auto maker = three_layers();
  const auto selector = make_selector(Spec::parse("fixed:layers=\"a,c\""), 0);
  selector->attach(maker.layers());
  EXPECT_EQ(selector->select(maker.at_step(1)), (Weights{1, 0, 1}));
}

TEST(Fixed, RefusesAPatternThatFitsNoLayer) {
  auto maker = three_layers();
  const auto selector = make_selector(Spec::parse("fixed:layers=block9"), 0);
  EXPECT_THROW(selector->attach(maker.layers()), ConfigError);
  EXPECT_THROW(make_selector(Spec::parse("fixed:layers=\",\""), 0), ConfigError);
}

TEST(Random, ChoosesOneLayerAStepEvenly) {
  auto maker = three_layers();
  const auto selector = make_selector({"random", {}}, 1);
  std::vector<int> counts(3);
  for (int i = 0; i < 3000; ++i) {
    const Weights weights = selector->select(maker.at_step(2));
    double sum = 0;
    for (std::size_t l = 0; l < 3; ++l) {
      sum += weights[l];
      counts[l] += weights[l] == 1;
    }
    ASSERT_EQ(sum, 1);
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 130);  // five standard deviations
}

TEST(Random, DependsOnItsSeedAndGoesOnFromItsState) {
  auto maker = three_layers();
  const auto draws = [&](Selector& selector) {
    std::vector<Weights> all;
    for (int i = 0; i < 20; ++i) all.push_back(selector.select(maker.at_step(2)));
    return all;
  };
  const auto first = make_selector({"random", {}}, 1), second = make_selector({"random", {}}, 1),
             other = make_selector({"random", {}}, 2);
  const auto drawn = draws(*first);
  EXPECT_EQ(draws(*second), drawn);
  EXPECT_NE(draws(*other), drawn);
  State state;
  StateArchive saving(maker.arena(), state);
  first->remember(saving);
  const State saved = state;
  const auto next = draws(*first);
  StateArchive loading(maker.arena(), saved);
  other->remember(loading);
  EXPECT_EQ(draws(*other), next);
  first->reset();
  EXPECT_EQ(draws(*first), drawn);
}

TEST(Random, DrawsByRunWhereItIsAskedTo) {
  auto maker = three_layers();
  const auto draws = [&](const char* spec, const std::string& run) {
    const auto selector = make_selector(Spec::parse(spec), 1);
    selector->name_run(run);
    std::vector<Weights> all;
    for (int i = 0; i < 20; ++i) all.push_back(selector->select(maker.at_step(2)));
    return all;
  };
  // By default the seed is all: records that were made so keep their meaning.
  EXPECT_EQ(draws("random", "a"), draws("random", "b"));
  EXPECT_EQ(draws("random", "a"), draws("random:draws=seed", "b"));
  EXPECT_NE(draws("random:draws=run", "a"), draws("random:draws=run", "b"));
  EXPECT_EQ(draws("random:draws=run", "a"), draws("random:draws=run", "a"));
}

TEST(NormAffine, LeavesOutWhatIsNotANorm) {
  ParameterFilter filter;
  make_selector({"norm_affine", {}}, 0)->restrict(filter);
  EXPECT_TRUE(filter.norms);
  EXPECT_FALSE(filter.others);
}

TEST(Selectors, NameTheNearestForATypo) {
  try {
    make_selector({"gaia", {}}, 0);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"gala\""), std::string::npos);
  }
}

}  // namespace
}  // namespace gala
