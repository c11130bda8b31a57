#include "gala/adapt/tally.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "gala/model/classes.h"

namespace gala {
namespace {

using Numbers = std::vector<std::int64_t>;

Batch labelled(const Numbers& labels, const std::vector<std::int32_t>& domains = {}) {
  Batch batch;
  batch.labels = labels;
  batch.domains = domains;
  return batch;
}

TEST(Tally, CountsRightAnswersAmongKnownLabels) {
  EXPECT_EQ(tally_of(labelled({2, 1, -1, 0, 3}), Numbers{2, 0, 0, 0, 3}), (Tally{5, 4, 3}));
  EXPECT_EQ(tally_of(labelled({-1, -1}), Numbers{0, 1}), (Tally{2, 0, 0}));
  EXPECT_EQ(tally_of(labelled({}), Numbers{}), Tally{});
}

TEST(Tally, AnAnswerThatIsNotFiniteIsNeverRight) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor logits = at::tensor({nan, nan, 2.0f, 1.0f, nan, 0.0f}).view({3, 2});
  const Numbers predictions = predictions_of(logits);
  EXPECT_EQ(tally_of(labelled({0, 0, 0}), predictions), (Tally{3, 3, 1}));
  // An unknown label looks like no class, and is not right for that.
  EXPECT_EQ(tally_of(labelled({-1, -1, -1}), predictions), (Tally{3, 0, 0}));
}

TEST(Tally, AddsUp) {
  Tally sum{5, 4, 3};
  sum += {10, 8, 1};
  EXPECT_EQ(sum, (Tally{15, 12, 4}));
}

TEST(Tally, TellsTheDomainsOfABatchApart) {
  std::vector<Tally> domains = {{1, 1, 1}, {}, {}};
  tally_by_domain(labelled({0, 1, 2, -1}, {2, 0, 2, 2}), Numbers{0, 1, 1, 0}, domains);
  EXPECT_EQ(domains, (std::vector<Tally>{{2, 2, 2}, {}, {3, 2, 1}}));
}

}  // namespace
}  // namespace gala
