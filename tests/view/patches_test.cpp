#include "gala/view/patches.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace gala {
namespace {

std::unique_ptr<View> attached(const std::string& spec) {
  auto view = make_view(spec);
  view->attach(at::kCPU, {});
  return view;
}

/// Images whose pixels are the numbers of their patches, times 100, plus row and column in the patch, and a
/// half more in each channel.
at::Tensor numbered(std::int64_t count, std::int64_t grid, std::int64_t tall, std::int64_t wide) {
  const auto line = [](std::int64_t size) { return at::arange(size, at::kFloat); };
  const at::Tensor row = line(grid * tall).view({1, 1, -1, 1}), column = line(grid * wide);
  const at::Tensor patch = row.div(tall, "floor") * grid + column.div(wide, "floor");
  const at::Tensor inside = row.remainder(tall) * wide + column.remainder(wide);
  const at::Tensor channel = line(3).view({1, 3, 1, 1}) / 2;
  return (patch * 100 + inside + channel).expand({count, -1, -1, -1}).contiguous();
}

/// Which patch stands in each place of an image of `numbered`; fails where a patch is not whole.
std::vector<int> order_of(const at::Tensor& image, std::int64_t grid, std::int64_t tall,
                          std::int64_t wide) {
  const at::Tensor original = numbered(1, grid, tall, wide)[0];
  std::vector<int> order;
  for (std::int64_t place = 0; place < grid * grid; ++place) {
    const auto patch = [&](const at::Tensor& of, std::int64_t number) {
      return of.narrow(1, number / grid * tall, tall).narrow(2, number % grid * wide, wide);
    };
    const at::Tensor here = patch(image, place);
    const int number = static_cast<int>(here[0][0][0].item<float>() / 100);
    EXPECT_TRUE(here.equal(patch(original, number))) << place;
    order.push_back(number);
  }
  return order;
}

TEST(Patches, MovesWholePatchesAndKeepsEachOfThem) {
  for (const auto& [grid, tall, wide] : {std::tuple{4, 8, 8}, {2, 3, 5}, {7, 1, 2}}) {
    const auto view = attached("patches:grid=" + std::to_string(grid));
    view->draw(1, 2);
    const at::Tensor images = numbered(6, grid, tall, wide);
    const at::Tensor result = view->look(images);
    for (std::int64_t i = 0; i < 6; ++i) {
      const std::vector<int> order = order_of(result[i], grid, tall, wide);
      EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(),
                static_cast<std::size_t>(grid * grid));
    }
    const at::Tensor last = view->look(images.contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(last.equal(result));
  }
}

TEST(Patches, HasEveryOrderEquallyOftenInEveryImage) {
  const auto view = attached("patches:grid=2");
  const at::Tensor images = numbered(400, 2, 1, 1);
  std::map<std::vector<int>, int> seen, second;
  constexpr int kDraws = 30;
  for (int number = 0; number < kDraws; ++number) {
    view->draw(3, number);
    const at::Tensor result = view->look(images);
    for (std::int64_t i = 0; i < 400; ++i) ++seen[order_of(result[i], 2, 1, 1)];
  }
  for (int number = 0; number < 2400; ++number) {  // the same image in many draws
    view->draw(5, number);
    ++second[order_of(view->look(images.narrow(0, 0, 2))[1], 2, 1, 1)];
  }
  for (const auto* counts : {&seen, &second}) {
    ASSERT_EQ(counts->size(), 24U);
    const double expected = counts == &seen ? 500 : 100;
    double chi_squared = 0;
    for (const auto& [order, count] : *counts) {
      chi_squared += std::pow(count - expected, 2) / expected;
    }
    EXPECT_LT(chi_squared, 23 + 5 * std::sqrt(46.0));
  }
}

TEST(Patches, DependsOnSeedAndNumberAlone) {
  const at::Tensor images = numbered(3, 4, 2, 2);
  const auto seen = [&](std::uint64_t seed, std::int64_t number, int count, int which) {
    const auto view = attached("patches");
    view->draw(seed, number, count);
    return view->look(images, which);
  };
  EXPECT_TRUE(seen(1, 2, 1, 0).equal(seen(1, 2, 3, 0)));
  EXPECT_FALSE(seen(1, 2, 1, 0).equal(seen(2, 2, 1, 0)));
  EXPECT_FALSE(seen(1, 2, 1, 0).equal(seen(1, 3, 1, 0)));
  EXPECT_FALSE(seen(1, 2, 2, 0).equal(seen(1, 2, 2, 1)));
}

TEST(Patches, ResizesSidesThatAreNoMultiplesAndBack) {
  at::manual_seed(6);
  const at::Tensor images = at::rand({2, 3, 14, 17});
  const auto view = attached("patches:grid=4");
  view->draw(1, 1);
  const auto resized = [](const at::Tensor& from, std::int64_t height, std::int64_t width) {
    return at::_upsample_bilinear2d_aa(from, {height, width}, false);
  };
  const at::Tensor expected = resized(view->look(resized(images, 12, 16)), 14, 17);
  EXPECT_TRUE(at::allclose(view->look(images), expected, 0, 1e-6));
  const at::Tensor last = view->look(images.contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::allclose(last, expected, 0, 1e-6));
}

TEST(Patches, RefusesPicturesSmallerThanItsGrid) {
  const auto view = attached("patches:grid=5");
  view->draw(1, 1);
  EXPECT_THROW(view->look(at::rand({1, 3, 4, 8})), Error);
  EXPECT_EQ(view->look(at::rand({0, 3, 11, 11})).size(0), 0);
}

}  // namespace
}  // namespace gala
