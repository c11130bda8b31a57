// Teachers, and answering with them.
#include "gala/method/teacher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gala/base/error.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

const MethodOptions kTaught{
    .loss = "teacher_cross_entropy", .select = "all", .teacher = "mean:keep=0.9", .guard = "off"};

/// The network with other parameters in the arena's order.
at::Tensor logits_with(const at::Tensor& values, const at::Tensor& images) {
  auto model = toy_model();
  Adapter adapter(*model, {.select = "all", .guard = "off"});
  adapter.parameters().values().copy_(values);
  return adapter.answer(images).logits;
}

TEST(MeanTeacher, FollowsTheStudent) {
  auto model = toy_model();
  MethodOptions options = kTaught;
  options.answer = AnswerWith::kTeacher;
  Adapter adapter(*model, options);
  at::Tensor teacher = parameters_of(adapter);
  for (int i = 1; i <= 3; ++i) {
    const at::Tensor expected = logits_with(teacher, toy_images(i));
    EXPECT_TRUE(at::allclose(adapter.answer(toy_images(i)).logits, expected, 1e-5, 1e-6)) << i;
    teacher = 0.9 * teacher + 0.1 * parameters_of(adapter);
  }
  EXPECT_FALSE(at::allclose(teacher, parameters_of(adapter), 0, 1e-5));
}

TEST(MeanTeacher, TheSumIsOfBoth) {
  auto model = toy_model(), twin = toy_model(), third = toy_model();
  MethodOptions sum = kTaught, teacher = kTaught;
  sum.answer = AnswerWith::kSum;
  teacher.answer = AnswerWith::kTeacher;
  Adapter both(*model, sum), one(*twin, teacher), other(*third, kTaught);
  for (int i = 1; i <= 3; ++i) {
    const at::Tensor expected =
        one.answer(toy_images(i)).logits + other.answer(toy_images(i)).logits;
    EXPECT_TRUE(at::allclose(both.answer(toy_images(i)).logits, expected, 1e-6, 1e-6));
  }
}

TEST(SourceTeacher, StaysTheSource) {
  auto model = toy_model();
  MethodOptions options = kTaught;
  options.teacher = "source";
  options.answer = AnswerWith::kTeacher;
  Adapter adapter(*model, options);
  const at::Tensor source = parameters_of(adapter);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(at::allclose(adapter.answer(toy_images(i)).logits,
                             logits_with(source, toy_images(i)), 1e-5, 1e-6));
  }
  EXPECT_FALSE(same_bytes(source, parameters_of(adapter)));
}

/// Adds the number of the look to every image.
class Brighter : public View {
 public:
  void attach(at::Device, const Preprocessing&) override {}
  void draw(std::uint64_t, std::int64_t, int count) override { drawn = count; }
  at::Tensor look(const at::Tensor& images, int which) override { return images + which; }
  int drawn = 0;
};

TEST(MeanTeacher, AveragesItsLooksWhereTheSourceIsUnsure) {
  for (const bool unsure : {true, false}) {
    auto model = toy_model();
    MethodOptions options = kTaught;
    options.teacher = unsure ? "mean:views=3,below=1" : "mean:views=3,below=0";
    options.answer = AnswerWith::kTeacher;
    Adapter adapter(*model, options, {.parts = {.view = std::make_unique<Brighter>()}});
    const at::Tensor source = parameters_of(adapter);
    at::Tensor expected = logits_with(source, toy_images(1));
    if (unsure) {
      expected = (expected + logits_with(source, toy_images(1) + 1) +
                  logits_with(source, toy_images(1) + 2)) /
                 3;
    }
    EXPECT_TRUE(at::allclose(adapter.answer(toy_images(1)).logits, expected, 1e-5, 1e-5)) << unsure;
  }
}

/// A part of one's own, which has the pass made in one piece.
class Nothing : public AfterStep {
 public:
  void after(const StepView&, const StepRecord&) override {}
};

/// Where the teacher chooses, the pass comes in pieces (the host learns the choice in between): the same bits as in one.
TEST(MeanTeacher, ChoosesInTheMiddleOfAPass) {
  constexpr int kBatches = 6;
  auto source = toy_model();
  std::vector<float> sure;
  for (int i = 0; i < kBatches; ++i) {
    const at::Tensor logits = source->forward(toy_images(i)).logits;
    sure.push_back(at::softmax(logits, 1).amax(1).mean().item<float>());
  }
  std::sort(sure.begin(), sure.end());
  ASSERT_LT(sure[2], sure[3]);
  for (const AnswerWith answer : {AnswerWith::kStudent, AnswerWith::kTeacher, AnswerWith::kSum}) {
    for (const double below : {0.0, (sure[2] + sure[3]) / 2.0, 1.0}) {
      MethodOptions options = kTaught;
      options.norm = "source";
      options.view = "augment";
      options.select = "palm";
      options.answer = answer;
      options.teacher = fmt::format("mean:keep=0.9,views=3,below={}", below);
      auto model = toy_model(), twin = toy_model();
      AdapterSetup setup;
      setup.parts.after_step.push_back(std::make_unique<Nothing>());
      Adapter pieces(*model, options), whole(*twin, options, std::move(setup));
      for (int i = 0; i < kBatches; ++i) {
        const Answer a = pieces.answer(toy_images(i)), b = whole.answer(toy_images(i));
        ASSERT_TRUE(same_bytes(a.logits, b.logits)) << options.teacher << ' ' << i;
        ASSERT_EQ(a.steps[0].loss, b.steps[0].loss);
      }
      EXPECT_TRUE(same_bytes(parameters_of(pieces), parameters_of(whole))) << options.teacher;
    }
  }
}

TEST(MeanTeacher, RefusesValuesOutOfRange) {
  for (const char* spec : {"mean:keep=2", "mean:views=-1", "meen"}) {
    EXPECT_THROW(make_teacher(spec), ConfigError) << spec;
  }
}

}  // namespace
}  // namespace gala
