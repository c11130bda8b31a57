#include "gala/select/gala.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "gala/base/error.h"
#include "tests/select/proposal_maker.h"

namespace gala {
namespace {

using Weights = std::vector<double>;
constexpr double kDegree = std::numbers::pi / 180;

TEST(Gala, MovesEveryLayerALittleWhenAWindowOpens) {
  GalaSelector selector({});
  ProposalMaker maker({layer_sums(1), layer_sums(2)});
  EXPECT_EQ(selector.select(maker.at_step(1)), (Weights{0.01, 0.01}));
}

TEST(Gala, MovesTheBestAlignedLayerAlone) {
  GalaSelector selector({});
  ProposalMaker maker({layer_sums(1, 1, 80 * kDegree), layer_sums(1, 1, 10 * kDegree),
                       layer_sums(1, 1, 45 * kDegree)});
  EXPECT_EQ(selector.select(maker.at_step(2)), (Weights{0, 1, 0}));
}

// The paper's example: for a large displacement alignment wins, for a small one magnitude.
TEST(Gala, WeighsAlignmentAgainstMagnitudeAsThePaperSays) {
  GalaSelector selector({.threshold = 0.5});
  ProposalMaker large({layer_sums(1, 10, 30 * kDegree), layer_sums(3, 10, 60 * kDegree)});
  EXPECT_EQ(selector.select(large.at_step(2)), (Weights{1, 0}));
  ProposalMaker small({layer_sums(1, 0.5, 30 * kDegree), layer_sums(3, 0.5, 60 * kDegree)});
  EXPECT_EQ(selector.select(small.at_step(2)), (Weights{0, 1}));
}

TEST(Gala, FreezesALayerWhoseUpdateTurnsBack) {
  GalaSelector selector({});
  ProposalMaker maker({layer_sums(1, 10, 170 * kDegree), layer_sums(1, 10, 120 * kDegree)});
  EXPECT_EQ(selector.select(maker.at_step(2)), (Weights{0, 0}));
}

TEST(Gala, AsksForMoreThanTheThreshold) {
  // β = 60° and T = u: cos α = cos 30°.
  const double cosine_30 = std::sqrt(3) / 2;
  ProposalMaker maker({layer_sums(1, 1, 60 * kDegree)});
  EXPECT_EQ(GalaSelector({.threshold = cosine_30 - 1e-9}).select(maker.at_step(2)), (Weights{1}));
  EXPECT_EQ(GalaSelector({.threshold = cosine_30 + 1e-9}).select(maker.at_step(2)), (Weights{0}));
}

TEST(Gala, MovesAllLayersAboveTheThresholdInModeMultiple) {
  GalaSelector selector({.threshold = 0.9, .mode = GalaMode::kMultiple});
  ProposalMaker maker({layer_sums(1, 1, 10 * kDegree), layer_sums(1, 1, 90 * kDegree),
                       layer_sums(1, 1, 20 * kDegree)});
  EXPECT_EQ(selector.select(maker.at_step(2)), (Weights{1, 0, 1}));
}

TEST(Gala, BreaksTiesByTheLargerUpdateThenByOrder) {
  GalaSelector selector({});
  EXPECT_EQ(
      selector.select(ProposalMaker({layer_sums(1), layer_sums(3), layer_sums(2)}).at_step(5)),
      (Weights{0, 1, 0}));
  EXPECT_EQ(selector.select(ProposalMaker({layer_sums(2), layer_sums(2)}).at_step(5)),
            (Weights{1, 0}));
}

TEST(Gala, TreatsNearCosinesAsATieWhenToldTo) {
  ProposalMaker maker({layer_sums(1, 1, 10 * kDegree), layer_sums(5, 5, 11 * kDegree)});
  EXPECT_EQ(GalaSelector({}).select(maker.at_step(2)), (Weights{1, 0}));
  EXPECT_EQ(GalaSelector({.tie = 0.01}).select(maker.at_step(2)), (Weights{0, 1}));
}

TEST(Gala, NeverChoosesALayerThatWouldNotMove) {
  GalaSelector selector({.threshold = 0});
  EXPECT_EQ(selector.select(ProposalMaker({layer_sums(0), layer_sums(0, 2)}).at_step(2)),
            (Weights{0, 0}));
}

TEST(Gala, OpensWithTheChosenLayerAloneWhenToldTo) {
  GalaSelector selector({.opening = GalaOpening::kArgmax});
  EXPECT_EQ(selector.select(ProposalMaker({layer_sums(1), layer_sums(3)}).at_step(1)),
            (Weights{0, 1}));
}

TEST(Gala, ScalesTheOpeningByAnAbsoluteRate) {
  GalaSelector selector({.opening_rate = 1e-5});
  ProposalMaker maker({layer_sums(1)});
  EXPECT_DOUBLE_EQ(selector.select(maker.at_step(1, 1e-3))[0], 0.01);
  EXPECT_DOUBLE_EQ(selector.select(maker.at_step(1, 1e-6))[0], 1);
}

TEST(Gala, RampsTheOpeningLinearly) {
  GalaSelector selector({.opening_scale = 1, .opening_steps = 3, .opening_ramp = true});
  ProposalMaker maker({layer_sums(1), layer_sums(1, 1, 90 * kDegree)});
  for (int step = 1; step <= 3; ++step) {
    EXPECT_EQ(selector.select(maker.at_step(step)), (Weights{step / 4.0, step / 4.0}));
  }
  EXPECT_EQ(selector.select(maker.at_step(4)), (Weights{1, 0}));
}

TEST(Gala, DeclaresItsWindow) {
  const Window window = GalaSelector({.window = 7,
                                      .anchor = Anchor::kPrevious,
                                      .displacement = DisplacementForm::kDifference,
                                      .optimizer = MomentsAtReset::kReset})
                            .window();
  EXPECT_EQ(window.length, 7);
  EXPECT_EQ(window.anchor, Anchor::kPrevious);
  EXPECT_EQ(window.form, DisplacementForm::kDifference);
  EXPECT_TRUE(window.resets_optimizer);
}

TEST(Gala, RefusesOptionsOutOfRange) {
  for (const char* spec : {"gala:threshold=1.5", "gala:threshold=-2", "gala:window=-1",
                           "gala:opening_scale=2", "gala:opening_rate=-1", "gala:opening_steps=-1",
                           "gala:tie=-0.1", "gala:mode=double", "gala:treshold=0.5"}) {
    EXPECT_THROW(make_selector(Spec::parse(spec), 0), ConfigError) << spec;
  }
}

TEST(StepClock, OpensAWindowEveryLengthSteps) {
  StepClock clock;
  std::vector<std::int64_t> openings;
  for (int i = 0; i < 10; ++i) {
    if (clock.opens_window()) openings.push_back(clock.step);
    clock.advance(4);
  }
  EXPECT_EQ(openings, (std::vector<std::int64_t>{1, 5, 9}));
}

TEST(StepClock, NeverOpensAgainWithoutALength) {
  StepClock clock;
  for (int i = 0; i < 100; ++i) clock.advance(0);
  EXPECT_EQ(clock.window_step, 101);
}

}  // namespace
}  // namespace gala
