#include "gala/select/auto_rgn.h"

#include <gtest/gtest.h>

#include "tests/select/proposal_maker.h"

namespace gala {
namespace {

LayerSums with_gradient(double gradient, double value) {
  return {1, 0, 0, gradient * gradient, value * value, 6};
}

TEST(AutoRgn, DividesRelativeGradientNormsByTheLargest) {
  AutoRgnSelector selector({});
  ProposalMaker maker({with_gradient(1, 2), with_gradient(3, 3), with_gradient(1, 10)});
  const auto weights = selector.select(maker.at_step(2));
  EXPECT_DOUBLE_EQ(weights[0], 0.5);
  EXPECT_DOUBLE_EQ(weights[1], 1);
  EXPECT_DOUBLE_EQ(weights[2], 0.1);
}

TEST(AutoRgn, LeavesALayerOfZerosAndAZeroGradientInPlace) {
  AutoRgnSelector selector({});
  EXPECT_EQ(selector.select(ProposalMaker({with_gradient(1, 0), with_gradient(1, 1)}).at_step(1)),
            (std::vector<double>{0, 1}));
  EXPECT_EQ(selector.select(ProposalMaker({with_gradient(0, 1), with_gradient(0, 2)}).at_step(1)),
            (std::vector<double>{0, 0}));
}

TEST(AutoRgn, WorksOnTensorsWithoutNorms) {
  ParameterFilter filter;
  AutoRgnSelector({}).restrict(filter);
  EXPECT_FALSE(filter.norms);
  AutoRgnSelector({.norms = true}).restrict(filter);
  EXPECT_TRUE(filter.norms);
  EXPECT_EQ(AutoRgnSelector({}).default_granularity(), Granularity::kTensor);
}

}  // namespace
}  // namespace gala
