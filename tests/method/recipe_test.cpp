// Every recipe there is, on a small network: state, reset, guard and shadow mode; and the same with statistics of each class.
#include "gala/method/recipe.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <limits>

#include "gala/base/error.h"
#include "gala/method/method_parts.h"
#include "tests/method/easy_recipe.h"

namespace gala {
namespace {

constexpr std::int64_t kImages = 8, kSide = 8;

at::Tensor batch(std::int64_t number) {
  return toy_images(number, kImages, kSide).clamp(0, 1);
}

/// A network and an adapter on it.
struct Bench {
  std::unique_ptr<Model> model = toy_model(1, "source");
  Adapter adapter;

  explicit Bench(const MethodOptions& options)
      : adapter(*model, options, {.source_images = toy_source(options)}) {}
};

struct Case {
  Recipe recipe;
  std::string norm;  ///< empty: the recipe's own
};

class EveryRecipe : public testing::TestWithParam<Case> {
 protected:
  MethodOptions options() const {
    MethodOptions options = easy_recipe(GetParam().recipe.name);
    if (!GetParam().norm.empty()) options.norm = GetParam().norm;
    return options;
  }
  bool moves() const { return Spec::parse(options().select).name != "none"; }
};

TEST_P(EveryRecipe, MovesParametersAndAnswersWithFiniteLogits) {
  Bench bench(options());
  const at::Tensor source = parameters_of(bench.adapter);
  for (int i = 1; i <= 3; ++i) {
    const Answer answer = bench.adapter.answer(batch(i));
    EXPECT_TRUE(at::isfinite(answer.logits).all().item<bool>());
    EXPECT_TRUE(answer.from_source.empty());
  }
  EXPECT_EQ(bench.adapter.totals().refused, 0);
  EXPECT_EQ(same_bytes(source, parameters_of(bench.adapter)), !moves());
}

TEST_P(EveryRecipe, GoesOnBitForBit) {
  Bench straight(options()), first(options()), second(options());
  for (int i = 1; i <= 3; ++i) {
    straight.adapter.answer(batch(i));
    first.adapter.answer(batch(i));
  }
  second.adapter.load(first.adapter.save());
  for (int i = 4; i <= 7; ++i) {
    EXPECT_TRUE(same_bytes(straight.adapter.answer(batch(i)).logits,
                           second.adapter.answer(batch(i)).logits))
        << i;
  }
  const State a = straight.adapter.save(), b = second.adapter.save();
  EXPECT_EQ(a.values, b.values);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    EXPECT_TRUE(same_bytes(tensor, b.tensors.at(name))) << name;
  }
}

TEST_P(EveryRecipe, BeginsAnewAfterAReset) {
  Bench fresh(options()), used(options());
  for (int i = 1; i <= 3; ++i) used.adapter.answer(batch(i));
  used.adapter.reset();
  for (int i = 4; i <= 6; ++i) {
    EXPECT_TRUE(
        same_bytes(used.adapter.answer(batch(i)).logits, fresh.adapter.answer(batch(i)).logits))
        << i;
  }
  EXPECT_TRUE(same_bytes(parameters_of(used.adapter), parameters_of(fresh.adapter)));
}

TEST_P(EveryRecipe, AnswersWithTheSourceInShadowMode) {
  MethodOptions shadowed = options();
  shadowed.shadow = true;
  Bench bench(shadowed), open(options());
  auto source = toy_model(1, "source");
  for (int i = 1; i <= 3; ++i) {
    const Answer answer = bench.adapter.answer(batch(i));
    EXPECT_TRUE(at::allclose(answer.logits, source->forward(batch(i)).logits, 0, 1e-6));
    EXPECT_TRUE(same_bytes(answer.adapted, open.adapter.answer(batch(i)).logits));
  }
}

/// Whatever ruined its parameters.
TEST_P(EveryRecipe, IsRolledBackByTheGuard) {
  MethodOptions guarded = options();
  guarded.guard = "rollback:every=1,horizon=24";
  Bench bench(guarded);
  const at::Tensor source = parameters_of(bench.adapter);
  for (int i = 1; i <= 3; ++i) bench.adapter.answer(batch(i));
  EXPECT_EQ(bench.adapter.totals().rollbacks, 0);
  // Who begins every batch with the source has nothing to lose.
  if (!moves() || options().episodic) return;
  {
    const c10::NoGradGuard no_grad;
    for (Parameter& each : bench.model->parameters()) {
      each.value.fill_(std::numeric_limits<float>::quiet_NaN());
    }
  }
  bench.adapter.answer(batch(4));
  EXPECT_EQ(bench.adapter.totals().rollbacks, 1);
  EXPECT_TRUE(same_bytes(source, parameters_of(bench.adapter)));
}

TEST_P(EveryRecipe, WritesItselfOut) {
  const MethodOptions once = written_out(options());
  EXPECT_EQ(written_out(once), once);
  for (const auto& [name, text] : GetParam().recipe.options) {
    MethodOptions other;
    EXPECT_TRUE(set_option(other, name, std::string(text))) << name;
  }
}

std::vector<Case> cases(const std::string& norm) {
  std::vector<Case> all;
  for (const Recipe& each : recipes()) all.push_back({each, norm});
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& each) {
  return std::string(each.param.recipe.name);
}

INSTANTIATE_TEST_SUITE_P(Recipe, EveryRecipe, testing::ValuesIn(cases("")), name_of);
INSTANTIATE_TEST_SUITE_P(Balanced, EveryRecipe,
                         testing::ValuesIn(cases("balanced:momentum=0.2,common=0.1")), name_of);

TEST(Recipe, IsOverriddenPartByPart) {
  MethodOptions options = recipe("roid");
  EXPECT_EQ(options.samples, "diverse_certain");
  options.select = "gala";
  Bench bench(options);
  const Answer answer = bench.adapter.answer(batch(1));
  EXPECT_GT(answer.steps[0].layers.size(), 10u);
}

TEST(Recipe, SaysWhatIsKnown) {
  try {
    recipe("rood");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"roid\""), std::string::npos);
  }
}

/// What contradicts itself is refused before anything moves.
TEST(Recipe, RefusesPartsThatDoNotFit) {
  const auto refused = [](MethodOptions options, const char* word, bool with_images = true) {
    auto model = toy_model(1, "source");
    try {
      Adapter(*model, options, {.source_images = with_images ? toy_source() : SourceImages{}});
      ADD_FAILURE() << word;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  MethodOptions options = recipe("roid");
  options.view = "none";
  refused(options, "no view");
  options = recipe("deyo");
  options.view = "none";
  refused(options, "patches");
  options = recipe("tent");
  options.view = "flip";
  refused(options, "nobody looks");
  options = recipe("cotta");
  options.teacher = "none";
  refused(options, "needs a teacher");
  options = recipe("tent");
  options.teacher = "mean";
  refused(options, "nobody asks the teacher");
  options.answer = AnswerWith::kTeacher;
  options.predict = PredictWith::kAfter;
  refused(options, "predict after");
  options = recipe("cotta");
  options.teacher = "source";
  options.view = "none";
  options.norm = "source";
  refused(options, "nothing to learn");
  refused(recipe("eata"), "source_data", /*with_images=*/false);
  refused(recipe("tent"), "nobody learns from images of the source");
  options = recipe("eata");
  options.penalty = "cosine";
  refused(options, "nobody learns from images of the source");
}

TEST(Recipe, SourceImagesAreNoMistakeWhereNothingAdapts) {
  MethodOptions options = recipe("tent");
  options.select = "none";
  auto model = toy_model(1, "source");
  EXPECT_NO_THROW(Adapter(*model, options, {.source_images = toy_source()}));
}

}  // namespace
}  // namespace gala
