#include "gala/view/augment.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gala {
namespace {

at::Tensor some_images(std::int64_t count = 4) {
  at::manual_seed(2);
  return at::rand({count, 3, 12, 16});
}

std::unique_ptr<View> attached(const std::string& spec, const Preprocessing& preprocessing = {}) {
  auto view = make_view(spec);
  view->attach(at::kCPU, preprocessing);
  return view;
}

at::Tensor seen(const std::string& spec, std::uint64_t seed, std::int64_t number, int count = 1,
                int which = 0) {
  const auto view = attached(spec);
  view->draw(seed, number, count);
  return view->look(some_images(), which);
}

TEST(Augment, DependsOnSeedAndNumberAlone) {
  const at::Tensor first = seen("augment", 5, 7);
  EXPECT_TRUE(first.equal(seen("augment", 5, 7)));
  EXPECT_FALSE(first.equal(seen("augment", 6, 7)));
  EXPECT_FALSE(first.equal(seen("augment", 5, 8)));
  // Other looks beside it change nothing, and are others.
  EXPECT_TRUE(first.equal(seen("augment", 5, 7, 3, 0)));
  EXPECT_FALSE(first.equal(seen("augment", 5, 7, 3, 2)));
  EXPECT_TRUE(seen("augment", 5, 7, 3, 2).equal(seen("augment", 5, 7, 4, 2)));
}

TEST(Augment, ShowsWhatItsDrawSays) {
  Random random(5, "augmented view", {7, 1});
  const at::Tensor expected = augmented(some_images(), draw_augment(random, false), {}, {});
  EXPECT_TRUE(expected.equal(seen("augment", 5, 7, 2, 1)));
}

TEST(Augment, DrawsOnceForAllImagesButNotItsNoise) {
  const auto view = attached("augment:noise=0");
  view->draw(1, 1);
  const at::Tensor images = some_images(1).expand({3, -1, -1, -1});
  const at::Tensor result = view->look(images);
  EXPECT_TRUE(result[0].equal(result[1]));
  const auto noisy = attached("augment");
  noisy->draw(1, 1);
  EXPECT_FALSE(noisy->look(images)[0].equal(noisy->look(images)[1]));
}

/// The noise on grey images that nothing else changes.
at::Tensor noise_of(double deviation, std::uint64_t seed) {
  const at::Tensor grey = at::full({100, 3, 32, 32}, 0.5);
  return (augmented(grey, {.noise_seed = seed}, {.noise = deviation}, {}) - 0.5).to(at::kDouble) /
         deviation;
}

double mean_of(const at::Tensor& values) {
  return values.mean().item<double>();
}

TEST(Augment, AddsNoiseThatIsNormalAndIndependent) {
  const at::Tensor noise = noise_of(0.005, 11);
  const double error = 5 / std::sqrt(static_cast<double>(noise.numel()));
  EXPECT_NEAR(mean_of(noise), 0, error);
  EXPECT_NEAR(mean_of(noise.pow(2)), 1, error * std::sqrt(2.0));
  EXPECT_NEAR(mean_of(noise.pow(3)), 0, error * std::sqrt(15.0));
  EXPECT_NEAR(mean_of(noise.pow(4)), 3, error * std::sqrt(96.0));
  // The parts of a normal distribution within 0.5, 1, 2 and 3 deviations.
  for (const double within : {0.5, 1.0, 2.0, 3.0}) {
    EXPECT_NEAR(mean_of((noise.abs() < within).to(at::kDouble)), std::erf(within / std::sqrt(2.0)),
                error);
  }
  // Beside each other in colour, column, row, image; and by another seed.
  for (const std::int64_t axis : {0, 1, 2, 3}) {
    EXPECT_NEAR(mean_of(noise * noise.roll({1}, {axis})), 0, error) << axis;
    EXPECT_NEAR(mean_of(noise.square() * noise.roll({1}, {axis}).square()), 1, 3 * error) << axis;
  }
  EXPECT_NEAR(mean_of(noise * noise_of(0.005, 12)), 0, error);
  EXPECT_NEAR(mean_of(noise * noise_of(0.005, 11 + (1ULL << 32))), 0, error);
}

TEST(Augment, HasTheSameBitsAtAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = seen("augment", 3, 4);
  at::set_num_threads(3);
  const at::Tensor three = seen("augment", 3, 4);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(three));
}

TEST(Augment, HasTheSameBitsInBothLayouts) {
  for (const char* spec : {"augment", "augment:padding=reflect,blur=no,noise=0"}) {
    const auto view = attached(spec, Preprocessing::imagenet());
    view->draw(3, 5);
    const at::Tensor images = some_images();
    const at::Tensor last = images.contiguous(at::MemoryFormat::ChannelsLast);
    EXPECT_TRUE(view->look(images).is_contiguous());
    EXPECT_TRUE(view->look(last).is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(view->look(images).equal(view->look(last)));
    // A part of a larger batch, of which the rows lie apart.
    const at::Tensor part = at::cat({images, images}, 3).slice(3, 0, 16);
    EXPECT_TRUE(view->look(part).equal(view->look(images)));
  }
}

TEST(Augment, KnowsPreprocessingAndTheOrderOfColours) {
  const at::Tensor images = some_images();
  const auto plain = attached("augment");
  plain->draw(9, 9);
  const at::Tensor expected = plain->look(images);
  Preprocessing other{.mean = {0.1, 0.3, 0.6}, .std = {0.2, 0.5, 0.9}};
  const at::Tensor mean = at::tensor(other.mean, at::kFloat).view({1, 3, 1, 1});
  const at::Tensor std = at::tensor(other.std, at::kFloat).view({1, 3, 1, 1});
  for (const std::string channels : {"rgb", "bgr"}) {
    other.channels = channels;
    const auto turned = [&](const at::Tensor& x) { return channels == "bgr" ? x.flip({1}) : x; };
    const auto view = attached("augment", other);
    view->draw(9, 9);
    const at::Tensor result = view->look((turned(images) - mean) / std);
    EXPECT_LT((turned(result * std + mean) - expected).abs().max().item<double>(), 3e-6);
  }
}

TEST(Augment, StaysWithinZeroAndOneAndHasNoGradient) {
  const at::Tensor images = (some_images() * 3 - 1).requires_grad_();
  const auto view = attached("augment:noise=0.5");
  view->draw(0, 0, View::kMostLooks);
  for (const int which : {0, 100, View::kMostLooks - 1}) {
    const at::Tensor result = view->look(images, which);
    EXPECT_FALSE(result.requires_grad());
    EXPECT_GE(result.min().item<double>(), 0);
    EXPECT_LE(result.max().item<double>(), 1);
  }
}

TEST(Augment, LeavesNothingButNoNumberOfAnImageThatHoldsOne) {
  at::Tensor images = some_images();
  images[1][2][3][4] = std::nan("");
  const auto view = attached("augment");
  view->draw(4, 4);
  const at::Tensor finite = view->look(images).isfinite();
  EXPECT_TRUE(finite[0].all().item<bool>());
  EXPECT_FALSE(finite[1].any().item<bool>());
  EXPECT_TRUE(finite[2].all().item<bool>());
}

TEST(Augment, TakesBatchesOfEverySize) {
  const auto view = attached("augment");
  view->draw(4, 4);
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 7}, {2, 3}, {33, 5}, {64, 64}}) {
    for (const std::int64_t count : {0, 1, 5}) {
      const at::Tensor result = view->look(at::rand({count, 3, height, width}));
      EXPECT_EQ(result.sizes(), at::IntArrayRef({count, 3, height, width}));
      EXPECT_TRUE(result.isfinite().all().item<bool>());
    }
  }
}

}  // namespace
}  // namespace gala
