#include "gala/select/trend.h"

#include <gtest/gtest.h>

#include "gala/base/error.h"
#include "gala/optim/host_workspace.h"
#include "gala/step/stepper.h"
#include "tests/select/proposal_maker.h"

namespace gala {
namespace {

using Weights = std::vector<double>;

TEST(Trend, DoesNotMistakeALongPastForOneInTheSameDirection) {
  // Both at right angles to what was: the first because its past is short beside its update.
  ProposalMaker maker({layer_sums(1, 0.1, 1.5707963267948966), layer_sums(1, 1, 1)});
  EXPECT_EQ(make_selector("trend", 0)->select(maker.at_step(2)), (Weights{1, 0}));
  EXPECT_EQ(make_selector("trend:score=excess", 0)->select(maker.at_step(2)), (Weights{0, 1}));
  EXPECT_EQ(make_selector("trend:score=noise", 0)->select(maker.at_step(2)), (Weights{0, 1}));
}

TEST(Trend, MovesNobodyWithoutAPast) {
  ProposalMaker maker({layer_sums(1), layer_sums(2)});
  for (const char* spec : {"trend:threshold=-1", "trend:mode=multiple,threshold=-1",
                           "trend:mode=weights,threshold=0.1"}) {
    EXPECT_EQ(make_selector(spec, 0)->select(maker.at_step(1)), (Weights{0, 0})) << spec;
  }
}

TEST(Trend, GivesWeightsUpToAWholeStep) {
  ProposalMaker maker({layer_sums(1, 1, 0), layer_sums(1, 1, 2.8), layer_sums(1, 4, 1.9)});
  const Weights weights =
      make_selector("trend:mode=weights,threshold=0.5", 0)->select(maker.at_step(2));
  EXPECT_EQ(weights[0], 1);
  EXPECT_NEAR(weights[1], std::cos(1.4) / 0.5, 1e-12);  // half the angle between two equal ones
  EXPECT_EQ(weights[2], 0) << "the sum points away from it";
}

/// The layer that goes to and fro is not chosen, and those that never moved are not at an advantage.
TEST(Trend, FollowsLayersThatKeepTheirDirection) {
  ArenaLayout layout;
  for (const char* name : {"fro", "on", "still"}) layout.add(name, {2}, {1});
  std::vector<float> values(static_cast<std::size_t>(layout.size), 0.0F);
  const LayerPartition layers{{{"fro", {0}, 2}, {"on", {1}, 2}, {"still", {2}, 2}}};
  auto selector = make_selector("trend:score=excess,keep=0.9", 0);
  selector->attach(layers);
  Stepper stepper(layout, values.data(), layers, make_optimizer("sgd:rate=1,momentum=0"),
                  std::move(selector), std::make_unique<HostWorkspace>(1));
  for (int step = 0; step < 9; ++step) {
    const float sign = step % 2 == 0 ? 1 : -1;
    const std::vector<std::vector<float>> gradients = {
        {sign, sign}, {1, 0.1F * sign}, {sign, static_cast<float>(1 - step % 3)}};
    const float loss = 1;
    const StepRecord record = stepper.step(
        std::vector<const float*>{gradients[0].data(), gradients[1].data(), gradients[2].data()},
        &loss);
    EXPECT_EQ(record.layers[1].weight, step == 0 ? 0 : 1) << step;
    EXPECT_EQ(record.layers[0].weight, 0);
    // What was proposed counts for all of them.
    if (step > 0) {
      EXPECT_GT(record.layers[0].shift_norm, 0);
    }
  }
}

TEST(Trend, RefusesWhatItCannotDo) {
  for (const char* spec : {"trend:keep=1.1", "trend:keep=-1", "trend:window=-1",
                           "trend:mode=weights", "trend:score=best"}) {
    EXPECT_THROW(make_selector(spec, 0), ConfigError) << spec;
  }
  for (const char* spec : {"relative:step=0", "relative:most=-1", "bandit:explore=2",
                           "bandit:keep=-1", "paced:share=-1"}) {
    EXPECT_THROW(make_selector(spec, 0), ConfigError) << spec;
  }
}

}  // namespace
}  // namespace gala
