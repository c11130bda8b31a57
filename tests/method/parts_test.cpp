// What is done after steps, and readouts, against their formulas.
#include <gtest/gtest.h>

#include <cmath>

#include "gala/base/error.h"
#include "gala/method/after_step.h"
#include "gala/method/readout.h"
#include "tests/adapt/toy.h"

namespace gala {
namespace {

TEST(Ensemble, MixesTheSourceIn) {
  const MethodOptions plain{.loss = "entropy", .select = "all", .guard = "off"};
  MethodOptions mixed = plain;
  mixed.after_step = "ensemble:source=0.25";
  auto model = toy_model(), twin = toy_model();
  Adapter first(*model, plain), second(*twin, mixed);
  const at::Tensor source = parameters_of(first);
  first.answer(toy_images(1));
  second.answer(toy_images(1));
  const at::Tensor expected = parameters_of(first) * 0.75 + source * 0.25;
  EXPECT_TRUE(at::allclose(parameters_of(second), expected, 0, 1e-7));
  EXPECT_FALSE(at::allclose(parameters_of(first), expected, 0, 1e-6));
  EXPECT_THROW(make_after_step("ensemble:source=2"), ConfigError);
}

TEST(Prior, MultipliesTheLogitsByTheSmoothedMean) {
  at::manual_seed(2);
  const at::Tensor logits = at::randn({3, 4}) * 2;
  const at::Tensor found = make_readout("prior")->correct({{}, logits});
  const at::Tensor prior = at::softmax(logits, 1).mean(0);
  const double smooth = (1.0 / 3) / prior.max().item<double>();
  EXPECT_TRUE(at::allclose(found, logits * (prior + smooth) / (1 + smooth * 4), 1e-6, 1e-6));
}

TEST(Prior, LetsABrokenImageSpoilNoOther) {
  at::manual_seed(2);
  const at::Tensor sound = at::randn({3, 4}) * 2;
  const at::Tensor broken = at::cat({sound, at::full({1, 4}, std::nan(""), at::kFloat)});
  const auto readout = make_readout("prior");
  const at::Tensor found = readout->correct({{}, broken});
  EXPECT_TRUE(at::isfinite(found.narrow(0, 0, 3)).all().item<bool>());
  EXPECT_TRUE(at::isnan(found[3]).all().item<bool>());
  EXPECT_TRUE(at::isnan(readout->correct({{}, broken.narrow(0, 3, 1)})).all().item<bool>());
}

}  // namespace
}  // namespace gala
