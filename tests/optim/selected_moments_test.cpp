// moments=selected: only the layers that move have a past.
#include <gtest/gtest.h>

#include "tests/optim/bench.h"

namespace gala {
namespace {

TEST(SelectedMoments, StayUntouchedByAMeasurement) {
  for (const std::string spec : {"adam:moments=selected", "sgd:momentum=0.9,moments=selected"}) {
    for (const DisplacementForm form :
         {DisplacementForm::kSum, DisplacementForm::kDifference, DisplacementForm::kProposed}) {
      Bench bench(spec, form, Anchor::kPrevious);
      bench.step(0, {1, 0, 1, 0.01});
      const State before = bench.state();
      const auto first = bench.measure(bench.gradients(1));
      EXPECT_TRUE(same_bytes(before, bench.state())) << spec;
      EXPECT_EQ(before.values, bench.state().values) << spec;
      EXPECT_TRUE(same_bytes(first, bench.measure(bench.gradients(1)))) << spec;
    }
  }
}

TEST(SelectedMoments, AdvanceOnlyForTheLayersThatMove) {
  for (const auto& [spec, form] :
       {std::pair<std::string, DisplacementForm>{"adam:moments=selected", DisplacementForm::kSum},
        {"sgd:momentum=0.9,moments=selected", DisplacementForm::kSum},
        {"adam:moments=selected", DisplacementForm::kProposed}}) {
    Bench bench(spec, form);
    bench.step(0);
    const State before = bench.state();
    for (int step = 1; step < 4; ++step) bench.step(step, {0, 1, 0, 0.01});
    const State after = bench.state();
    for (const char* name : {"values/conv.weight", "moment1/conv.weight", "values/wide.weight",
                             "moment1/wide.weight"}) {
      EXPECT_TRUE(same_bytes(before, after, name)) << spec << " " << name;
    }
    // Where it would have gone counts all the same, if that is asked for.
    EXPECT_EQ(same_bytes(before, after, "displacement/wide.weight"),
              form == DisplacementForm::kSum);
    for (const char* name : {"moment1/norm.weight", "moment1/norm.bias", "moment1/head.weight",
                             "moment1/head.bias", "values/norm.weight"}) {
      EXPECT_FALSE(same_bytes(before, after, name)) << spec << " " << name;
    }
    EXPECT_EQ(after.values.at("optimizer_steps"), (std::vector<int>{1, 4, 1, 4})) << spec;
  }
}

/// A layer that sat out some steps goes on as if those steps had never been.
TEST(SelectedMoments, KnowNothingOfTheStepsALayerSatOut) {
  for (const std::string spec :
       {"adam:rate=0.01,moments=selected", "sgd:momentum=0.9,nesterov=yes,moments=selected"}) {
    Bench sometimes(spec), always(spec);
    for (int step = 0; step < 9; ++step) {
      const bool moves = step % 3 == 0;
      sometimes.step(step, {moves ? 1.0 : 0.0, 1, 1, 1});
      if (moves) always.step(step, {1, 0, 0, 0});
    }
    EXPECT_TRUE(same_bytes(sometimes.state(), always.state(), "/conv.weight")) << spec;
  }
}

TEST(SelectedMoments, GiveTheSameUpdateWhenMeasuredAndWhenApplied) {
  Bench bench("adam:rate=0.01,moments=selected");
  for (int step = 0; step < 5; ++step) {
    const auto sums = bench.measure(bench.gradients(step));
    bench.displacement.reset();
    bench.apply(bench.gradients(step), {1, 1, 1, 1});
    for (std::size_t l = 0; l < sums.size(); ++l) {
      double applied = 0;
      for (const std::size_t tensor : bench.layers[l].tensors) {
        applied += bench.shift(tensor).to(at::kDouble).square().sum().item<double>();
      }
      EXPECT_NEAR(sums[l].update_sq, applied, 1e-12 * applied) << step << " " << l;
    }
  }
}

}  // namespace
}  // namespace gala
