#include "gala/select/control.h"

#include <gtest/gtest.h>

#include "gala/base/error.h"
#include "tests/select/proposal_maker.h"

namespace gala {
namespace {

using Weights = std::vector<double>;

/// Four layers of very different updates, of which GALA prefers the second.
ProposalMaker four_layers() {
  return ProposalMaker(
      {layer_sums(1, 1, 1.5), layer_sums(2, 1, 0), layer_sums(8, 1, 1.4), layer_sums(4, 1, 1.3)});
}

std::unique_ptr<Selector> make(const std::string& spec, ProposalMaker& maker) {
  auto selector = make_selector(spec, 1);
  selector->attach(maker.layers());
  return selector;
}

std::size_t moved(const Weights& weights) {
  std::size_t found = weights.size();
  for (std::size_t l = 0; l < weights.size(); ++l) {
    if (weights[l] == 0) continue;
    EXPECT_EQ(found, weights.size()) << "two layers moved";
    found = l;
  }
  return found;
}

TEST(Control, OpensAndSkipsAsGalaDoes) {
  auto maker = four_layers();
  const auto control = make("control:opening_scale=0.03", maker);
  EXPECT_EQ(control->select(maker.at_step(1)), (Weights{0.03, 0.03, 0.03, 0.03}));
  EXPECT_EQ(control->window().length, 20);
  ProposalMaker against({layer_sums(1, 5, 3), layer_sums(1, 5, 3)});
  const auto none = make("control", against);
  EXPECT_EQ(none->select(against.at_step(2)), (Weights{0, 0}));
}

TEST(Control, RotatesOverWindows) {
  auto maker = four_layers();
  const auto control = make("control:draw=rotation,match=no", maker);
  for (std::size_t step = 0; step < 9; ++step) {
    if (step == 3) control->select(maker.at_step(1));
    const Weights weights = control->select(maker.at_step(2));
    EXPECT_EQ(moved(weights), step % 4);
    EXPECT_EQ(weights[step % 4], 1);
  }
}

TEST(Control, RepeatsNobodyInAWindow) {
  auto maker = four_layers();
  const auto control = make("control:repeats=no,match=no", maker);
  for (int window = 0; window < 20; ++window) {
    control->select(maker.at_step(1));
    std::vector<int> counts(4);
    for (int step = 2; step <= 5; ++step) ++counts[moved(control->select(maker.at_step(step)))];
    EXPECT_EQ(counts, (std::vector<int>{1, 1, 1, 1}));
    EXPECT_LT(moved(control->select(maker.at_step(6))), 4u);  // nobody is left: all may again
  }
}

TEST(Control, DrawsAsOftenAsGalaWouldChoose) {
  auto maker = four_layers();
  const auto even = make("control:match=no", maker);
  const auto weighted = make("control:draw=frequencies,match=no", maker);
  std::vector<int> evenly(4), often(4);
  for (int i = 0; i < 2000; ++i) {
    ++evenly[moved(even->select(maker.at_step(2)))];
    ++often[moved(weighted->select(maker.at_step(2)))];
  }
  for (const int count : evenly) EXPECT_NEAR(count, 500, 100);
  EXPECT_GT(often[1], 1900);  // GALA's choice here
}

TEST(Control, TravelsAsFarAsGalaWould) {
  auto maker = four_layers();
  const double norms[] = {1, 2, 8, 4};
  for (const char* spec : {"control", "control:draw=rotation", "control:repeats=no"}) {
    const auto control = make(spec, maker);
    double way = 0, unmatched = 0;
    constexpr int kSteps = 2000;
    for (int i = 0; i < kSteps; ++i) {
      const Weights weights = control->select(maker.at_step(2 + i % 19));
      const std::size_t layer = moved(weights);
      way += weights[layer] * norms[layer];
      unmatched += norms[layer];
    }
    EXPECT_NEAR(way / kSteps, 2, 0.15) << spec;  // GALA moves the second layer, by 2
    EXPECT_GT(unmatched / kSteps, 3) << spec;
  }
}

/// A layer whose gradient died away is drawn as any other: no float32 factor takes it as far as GALA's went.
TEST(Control, NeverAsksALayerThatHardlyMovesForMoreThanAFloatCanSay) {
  ProposalMaker maker({layer_sums(1e4, 1, 0.1), layer_sums(1e-38, 1e-38, 1.5)});
  for (const char* spec :
       {"control", "control:draw=rotation", "control:draw=frequencies,window=5"}) {
    const auto control = make(spec, maker);
    bool drawn = false;
    for (int i = 0; i < 40; ++i) {
      const Weights weights = control->select(maker.at_step(2 + i % 3));
      EXPECT_LE(weights[moved(weights)], 1 << 24) << spec;
      drawn |= moved(weights) == 1;
    }
    EXPECT_TRUE(drawn) << spec;
  }
}

TEST(Control, GoesOnFromItsState) {
  for (const char* spec :
       {"control:repeats=no", "control:draw=rotation", "control:draw=frequencies"}) {
    auto maker = four_layers();
    const auto first = make(spec, maker), second = make(spec, maker);
    for (int i = 0; i < 7; ++i) first->select(maker.at_step(1 + i));
    State state;
    StateArchive save(maker.arena(), state);
    first->remember(save);
    const State saved = state;
    StateArchive load(maker.arena(), saved);
    second->remember(load);
    for (int i = 7; i < 30; ++i) {
      EXPECT_EQ(first->select(maker.at_step(1 + i % 20)), second->select(maker.at_step(1 + i % 20)))
          << spec;
    }
  }
}

TEST(Control, RefusesWhatItCannotDo) {
  EXPECT_THROW(make_selector("control:draw=rotation,repeats=no", 0), ConfigError);
  EXPECT_THROW(make_selector("control:threshold=2", 0), ConfigError);
  EXPECT_THROW(make_selector("control:draw=odd", 0), ConfigError);
}

}  // namespace
}  // namespace gala
