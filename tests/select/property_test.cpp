// Every selector on random layers and options against its rule written down anew. Without LibTorch.
#include <gtest/gtest.h>

#include "tests/select/plain_rule.h"

namespace gala {
namespace {

TEST(Selectors, AllHaveAPlainRuleToCompareWith) {
  for (const auto& entry : selector_registry())
    EXPECT_TRUE(plain_rules().contains(entry.name)) << entry.name;
}

class EverySelector : public testing::TestWithParam<std::string_view> {};

TEST_P(EverySelector, ChoosesAsItsRuleSays) {
  constexpr int kSeeds = 40, kSteps = 25;
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed, "rule");
    const auto rule = plain_rules().at(GetParam())(random, seed);
    Scene scene(seed);
    const auto selector = make_selector(rule->spec(), seed);
    selector->attach(scene.site.layers);
    ASSERT_EQ(selector->window().length, rule->window());
    for (int number = 1; number <= kSteps; ++number) {
      scene.begin_step(random, number);
      scene.rate = random.uniform(1e-4, 1e-2);
      scene.images = random.below(3) == 0 ? 0 : random.uniform(1, 90);
      scene.moved = random.uniform();
      scene.loss = random.uniform(-3, 3);
      const std::optional<Numbers> expected = rule->choose(scene);
      const Numbers found = selector->select(scene.proposal());
      if (!expected) break;  // what a rule remembers may be another from here on
      ASSERT_EQ(found.size(), expected->size());
      for (std::size_t l = 0; l < found.size(); ++l) {
        ASSERT_NEAR(found[l], (*expected)[l], 1e-12 * std::max(1.0, std::abs(found[l])))
            << rule->spec() << " seed " << seed << " step " << number << " layer " << l;
      }
      ++compared;
      scene.clock.advance(rule->window());
    }
  }
  EXPECT_GT(compared, kSeeds * kSteps / 2) << "too few choices were clear";
}

INSTANTIATE_TEST_SUITE_P(Selector, EverySelector, testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const auto& entry : selector_registry())
                             names.push_back(entry.name);
                           return names;
                         }()),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace gala
