#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "gala/adapt/adapter.h"
#include "gala/method/recipe.h"

namespace gala {
namespace {

/// Batches whose statistics lie away from those of a fresh network.
std::vector<at::Tensor> batches(std::int64_t size) {
  at::manual_seed(5);
  std::vector<at::Tensor> all;
  for (int i = 0; i < 6; ++i) all.push_back(at::randn({size, 3, 16, 16}) * 2 + 1);
  return all;
}

struct Ran {
  std::vector<at::Tensor> logits;
  double moved = 0;
};

Ran run(const char* optimizer, const std::vector<at::Tensor>& images, const char* select = nullptr,
        const char* norm = nullptr) {
  const auto model = make_model("wide_resnet:depth=10,width=1,classes=4", 3);
  MethodOptions options = recipe("auto");
  if (optimizer) options.optimizer = optimizer;
  if (select) options.select = select;
  if (norm) options.norm = norm;
  Adapter adapter(*model, options);
  Ran ran;
  for (const at::Tensor& each : images) ran.logits.push_back(adapter.answer(each).logits.clone());
  for (const double way : adapter.totals().path) ran.moved += way;
  return ran;
}

TEST(AutoMethod, NeedsNoRate) {
  const std::vector<at::Tensor> images = batches(16);
  const Ran as_it_is = run(nullptr, images);
  EXPECT_GT(as_it_is.moved, 0);
  for (const char* optimizer :
       {"adam:rate=0.0001,beta1=0,beta2=0", "adam:rate=0.01,beta1=0,beta2=0"}) {
    const Ran other = run(optimizer, images);
    EXPECT_NEAR(other.moved, as_it_is.moved, 1e-3 * as_it_is.moved) << optimizer;
    for (std::size_t i = 0; i < images.size(); ++i) {
      EXPECT_TRUE(other.logits[i].allclose(as_it_is.logits[i], 1e-2, 1e-3)) << optimizer << i;
    }
  }
}

/// The norm layers' own measure of how far the images are reaches the selector.
TEST(AutoMethod, CanKeepCalmWhereStatisticsAreTheSources) {
  const std::vector<at::Tensor> images = batches(16);
  const auto moved = [&](const char* select, const char* norm) {
    return run(nullptr, images, select, norm).moved;
  };
  const char* const near = "adaptive:horizon=16,tolerance=1e4";
  const char* const far = "adaptive:horizon=16,tolerance=0";
  EXPECT_LT(moved("paced:calm=yes", near), 0.01 * moved("paced", near));
  EXPECT_NEAR(moved("paced:calm=yes", far), moved("paced", far), 1e-9);
  // Modes that do not say are taken for far.
  EXPECT_NEAR(moved("paced:calm=yes", "batch"), moved("paced", "batch"), 1e-9);
}

TEST(AutoMethod, MovesLessBySmallBatches) {
  const std::vector<at::Tensor> many = batches(64);
  std::vector<at::Tensor> few;
  for (const at::Tensor& each : many) few.push_back(each.narrow(0, 0, 8));
  EXPECT_LT(run(nullptr, few).moved, 0.6 * run(nullptr, many).moved);
}

}  // namespace
}  // namespace gala
