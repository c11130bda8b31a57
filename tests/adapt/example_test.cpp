#include <gtest/gtest.h>

#include "examples/largest_update.h"
#include "gala/base/error.h"
#include "gala/gala.h"
#include "gala/loss/entropy.h"
#include "gala/optim/adam.h"
#include "tests/adapt/toy.h"

// The worked example of docs/adding_a_method.md, used as the document says.

namespace gala {
namespace {

TEST(Example, ChoosesTheLayerWithTheLargestRelativeUpdate) {
  auto model = toy_model();
  const LargestUpdateSelector::Options options;
  Adapter adapter(*model, {.loss = "entropy", .guard = "off"},
                  {.parts = {.selector = std::make_unique<LargestUpdateSelector>(options)}});
  const Answer answer = adapter.answer(toy_images(1));
  ASSERT_EQ(answer.steps[0].selected().size(), 1u);
  // Adam's first update is the rate in every entry, so the layer of the smallest parameters wins:
  // among norms of scale 1 and shift 0, convolutions of deviation 0.1 and more, that is no norm.
  const std::string chosen = adapter.layers()[answer.steps[0].selected()[0]].name;
  EXPECT_NE(chosen.find("conv"), std::string::npos) << chosen;
}

TEST(Example, RegistersInOneLine) {
  constexpr auto entry = registry_entry<Selector, LargestUpdateSelector, std::uint64_t>(
      "largest_update", "an example");
  const auto selector = entry.make(Spec::parse("largest_update:least=0.5"), 0);
  EXPECT_NE(selector, nullptr);
  EXPECT_THROW(entry.make(Spec::parse("largest_update:least=-1"), 0), ConfigError);
  EXPECT_EQ(entry.options()[0].name, "least");
}

}  // namespace
}  // namespace gala
