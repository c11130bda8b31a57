// A long run: memory and time stay flat, the arena stays the model's, the guard has nothing to say.
//
//   GALA_ENDURANCE=100000 build/tests/adapt/gala_test_adapt --gtest_filter='*Endurance*'
#include "tests/adapt/endurance.h"

namespace gala {
namespace {

constexpr std::int64_t kFew = 300;

class EnduranceOf : public testing::TestWithParam<const char*> {};

TEST_P(EnduranceOf, MemoryAndTimeStayFlatAndTheGuardCalm) {
  const std::int64_t batches = endurance_batches(kFew);
  const Endurance found = endure(enduring(GetParam()), batches);
  EXPECT_GT(found.steps, 0);
  EXPECT_LT(found.heap_growth, 0.01);
  EXPECT_EQ(found.alarms, 0);
  EXPECT_GT(found.asked, 0) << "and goes farther than the guard's limit";
  EXPECT_LT(found.error_begin, 0.1) << "the toy has learned its task";
  if (batches < 10000) {
    EXPECT_LT(found.error_end, 0.1) << "and has not forgotten it";
    return;  // of time and memory a short run says little: chance is larger
  }
  EXPECT_LT(found.resident_growth, 0.01);
  EXPECT_LT(found.slower, 1.1);
}

/// Teaches every class to be called the next one: each stays in use, and the network is sure.
class Rotate : public Loss {
 public:
  explicit Rotate(const std::vector<std::int64_t>& kinds) : kinds_(kinds) {}
  LossTerms evaluate(const LossInput& input) const override {
    const at::Tensor next = at::tensor(kinds_).add(1).remainder(EasyTask::kKinds).unsqueeze(1);
    const at::Tensor log_p = at::log_softmax(input.student.logits, 1);
    return {-log_p.gather(1, next).mean(), at::full({}, next.size(0))};
  }

 private:
  const std::vector<std::int64_t>& kinds_;
};

TEST(Endurance, ACollapseThatKeepsEveryClassIsSeen) {
  std::vector<std::int64_t> kinds;
  const auto model = taught_toy();
  Adapter adapter(*model,
                  {.select = "all",
                   .optimizer = "adam:rate=0.003",
                   .norm = "batch",
                   .guard = "warn:horizon=160,every=5,displacement=0.02"},
                  {.parts = {.loss = std::make_unique<Rotate>(kinds)}});
  std::int64_t half_wrong = 0, seen = 0;
  for (std::int64_t n = 1; n <= 200 && seen == 0; ++n) {
    const EasyTask task(static_cast<std::uint64_t>(n));
    kinds = task.kinds;
    const Answer answer = adapter.answer(task.images);
    if (half_wrong == 0 && 2 * task.right(answer.predictions) < std::ssize(kinds)) half_wrong = n;
    if (!answer.health || !answer.health->collapsed) continue;
    seen = n;
    EXPECT_EQ(answer.health->reasons, (std::vector<std::string>{"disagreement", "displacement"}));
    EXPECT_GT(answer.health->effective_classes, 3.5);
    EXPECT_LT(answer.health->agreement.value(), Guard::kAgreement);
  }
  ASSERT_GT(half_wrong, 0);
  EXPECT_GE(seen, half_wrong) << "no alarm while most answers are right";
  EXPECT_LE(seen, half_wrong + 30);
}

INSTANTIATE_TEST_SUITE_P(Endurance, EnduranceOf, testing::ValuesIn(kEnduring),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace gala
