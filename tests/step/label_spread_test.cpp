#include "gala/step/label_spread.h"

#include <gtest/gtest.h>

#include <vector>

#include "gala/base/random.h"

namespace gala {
namespace {

using Answers = std::vector<std::int64_t>;

TEST(LabelSpread, OfOneClassAloneIsTheNumberOfAnswers) {
  LabelSpread spread(4);
  EXPECT_EQ(spread.value(), 1);
  spread.take(Answers(63, 2));
  EXPECT_EQ(spread.value(), 1);  // a block has 64
  spread.take(Answers(1, 2));
  // (48² + 3 · 16²) / (64 · 3/4) = 64, of which half counts at once.
  EXPECT_NEAR(spread.value(), 32, 1e-9);
}

TEST(LabelSpread, SinksByAFifthABlock) {
  LabelSpread spread(2);
  spread.take(Answers(64, 0));
  const double first = spread.value();
  // 64 answers by the shares so far: nothing is seen.
  const double share = 0.5 + 64.0 / 2000 * 0.5;
  Answers even(33, 0);
  even.resize(64, 1);
  spread.take(even);
  const double seen = 2 * (33 - 64 * share) * (33 - 64 * share) /
                      (64 * (1 - share * share - (1 - share) * (1 - share)));
  EXPECT_NEAR(spread.value(), 0.8 * first + 0.2 * seen, 1e-9);
}

TEST(LabelSpread, OfIndependentAnswersStaysNearOne) {
  Random random(7, "label spread");
  LabelSpread spread(10);
  double sum = 0;
  for (int batch = 0; batch < 200; ++batch) {
    Answers answers;
    for (int i = 0; i < 200; ++i) answers.push_back(static_cast<std::int64_t>(random.below(10)));
    spread.take(answers);
    sum += spread.value();
  }
  EXPECT_LT(sum / 200, 1.3);
}

TEST(LabelSpread, OfClumpsIsAboutTheirLength) {
  Random random(7, "label spread");
  LabelSpread spread(10);
  double sum = 0;
  for (int batch = 0; batch < 200; ++batch) {
    Answers answers;
    for (int clump = 0; clump < 10; ++clump) {
      answers.insert(answers.end(), 20, static_cast<std::int64_t>(random.below(10)));
    }
    spread.take(answers);
    if (batch >= 100) sum += spread.value();
  }
  EXPECT_GT(sum / 100, 15);
  EXPECT_LT(sum / 100, 30);
}

TEST(LabelSpread, LeavesOutWhatIsNoClassAndForgets) {
  LabelSpread spread(3);
  spread.take(Answers(500, -1));
  EXPECT_EQ(spread.value(), 1);
  spread.take(Answers(200, 1));
  EXPECT_GT(spread.value(), 50);
  spread.reset();
  EXPECT_EQ(spread.value(), 1);
}

}  // namespace
}  // namespace gala
