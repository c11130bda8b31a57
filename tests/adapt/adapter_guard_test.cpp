// What the adapter does where the guard sees a collapse.
#include <gtest/gtest.h>

#include "gala/adapt/adapter.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

/// All layers move and a guard watches; `adam:rate=1` is a step as long as the parameters themselves, a collapse.
MethodOptions watched_options(const std::string& optimizer, const std::string& guard,
                              const std::string& norm = "batch") {
  MethodOptions options = toy_options("all");
  options.optimizer = optimizer;
  options.guard = guard;
  options.norm = norm;
  return options;
}

TEST(Adapter, RollsBackToTheSourceAfterCollapse) {
  auto model = toy_model();
  Adapter adapter(*model,
                  watched_options("adam:rate=1", "rollback:horizon=8,every=2,displacement=0.3"));
  const at::Tensor source = parameters_of(adapter);
  bool rolled_back = false;
  for (int i = 1; i <= 12; ++i) {
    const Answer answer = adapter.answer(toy_images(i));
    if (!answer.health || !answer.health->collapsed) continue;
    rolled_back = true;
    EXPECT_EQ(answer.health->action, "rollback to source");
    EXPECT_TRUE(same_bytes(source, parameters_of(adapter)));
  }
  EXPECT_TRUE(rolled_back);
  EXPECT_GT(adapter.totals().rollbacks, 0);
}

TEST(Adapter, RollsBackToTheLastHealthyParameters) {
  auto model = toy_model();
  // Any class less than at the reference is called a collapse.
  Adapter adapter(*model, watched_options("sgd:rate=0.05",
                                          "rollback:to=healthy,horizon=4,every=1,diversity=1"));
  at::Tensor healthy = parameters_of(adapter);
  int rollbacks = 0;
  for (int i = 1; i <= 60; ++i) {
    const Answer answer = adapter.answer(toy_images(i));
    if (!answer.health) continue;
    if (answer.health->collapsed) {
      EXPECT_TRUE(same_bytes(healthy, parameters_of(adapter)));
      ++rollbacks;
    } else {
      healthy = parameters_of(adapter);
    }
  }
  EXPECT_GT(rollbacks, 0);
}

TEST(Adapter, StopsAdaptingWhenTheGuardSaysSo) {
  auto model = toy_model();
  Adapter adapter(*model,
                  watched_options("adam:rate=1", "stop:horizon=4,every=1,displacement=0.1"));
  for (int i = 1; i <= 5; ++i) adapter.answer(toy_images(i));
  EXPECT_TRUE(adapter.stopped());
  const at::Tensor before = parameters_of(adapter);
  EXPECT_TRUE(adapter.answer(toy_images(6)).steps.empty());
  EXPECT_TRUE(same_bytes(before, parameters_of(adapter)));
}

TEST(Adapter, ChangesNoNumberWhenTheGuardOnlyWarns) {
  for (const std::string norm : {"batch", "source", "running", "adaptive", "blend:weight=0.3"}) {
    auto watched_model = toy_model(), plain_model = toy_model();
    Adapter plain(*plain_model, watched_options("adam:rate=0.1", "off", norm));
    Adapter watched(*watched_model,
                    watched_options("adam:rate=0.1", "warn:horizon=4,every=1", norm));
    bool collapsed = false, asked = false;
    for (int i = 1; i <= 10; ++i) {
      const Answer answer = watched.answer(toy_images(i));
      collapsed = collapsed || (answer.health && answer.health->collapsed);
      asked = asked || (answer.health && answer.health->agreement);
      EXPECT_TRUE(same_bytes(answer.logits, plain.answer(toy_images(i)).logits)) << norm << i;
    }
    EXPECT_TRUE(collapsed) << norm;
    EXPECT_TRUE(asked) << norm;
  }
}

/// Parameters that have hardly moved answer as the source's do, whosever statistics are in use, and after however
/// many batches. One answer in eighty may lie on the edge: `adaptive` counts on while it answers.
TEST(Adapter, NearItsSourceIsAsItsSourceInEveryNormMode) {
  for (const std::string norm : {"batch", "source", "running", "adaptive", "blend:weight=0.3"}) {
    auto model = toy_model();
    Adapter adapter(*model, watched_options("adam:rate=1e-6",
                                            "warn:horizon=4,every=1,displacement=1e-9", norm));
    double sum = 0;
    for (int i = 1; i <= 20; ++i) {
      const Answer answer = adapter.answer(toy_images(i));
      ASSERT_TRUE(answer.health && answer.health->agreement) << norm << i;
      sum += *answer.health->agreement;
    }
    EXPECT_GE(sum, norm == "adaptive" ? 19.5 : 20) << norm;
  }
}

}  // namespace
}  // namespace gala
