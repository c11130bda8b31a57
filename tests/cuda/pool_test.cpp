// The pooling of a ResNet's stem: our kernels against LibTorch's own operation.
#include "gala/model/cuda_pool.h"

#include <c10/core/GradMode.h>

#include <limits>

#include "tests/cuda/device.h"

namespace gala {
namespace {

class CudaPool : public OnCuda {};

at::Tensor theirs(const at::Tensor& input) {
  return at::max_pool2d(input, at::IntArrayRef{3, 3}, at::IntArrayRef{2, 2}, at::IntArrayRef{1, 1});
}

/// Numbers of which many are equal, so that it matters which of them is taken.
at::Tensor maps(at::IntArrayRef sizes, at::ScalarType type) {
  at::manual_seed(4);
  return at::randint(-3, 4, sizes, at::TensorOptions(at::kCUDA))
      .to(type)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

/// Output and gradient of the input. What comes back is whole numbers, whose sums are exact in any order.
template <class Pool>
std::vector<at::Tensor> run(const at::Tensor& input, const Pool& pool) {
  const at::Tensor leaf = input.detach().requires_grad_();
  const at::Tensor output = pool(leaf);
  at::manual_seed(9);
  const at::Tensor weight = at::randint(-8, 9, output.sizes(), at::TensorOptions(at::kCUDA));
  output.backward(weight.to(output.scalar_type()));
  return {output.detach(), leaf.grad()};
}

void compare(const at::Tensor& input) {
  const auto found = run(input, cuda_pool), expected = run(input, theirs);
  EXPECT_TRUE(found[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::allclose(found[0], expected[0], 0, 0, /*equal_nan=*/true)) << input.sizes();
  EXPECT_TRUE(at::equal(found[1], expected[1])) << input.sizes() << ' ' << input.scalar_type();
  const c10::NoGradGuard no_grad;
  EXPECT_TRUE(at::allclose(cuda_pool(input), expected[0], 0, 0, /*equal_nan=*/true));
}

TEST_F(CudaPool, IsLibTorchsForwardAndBackwardBitForBit) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t channels : {4, 12, 64, 260}) {
      for (const auto& [height, width] : {std::pair{1, 1},
                                          {1, 2},
                                          {2, 1},
                                          {2, 2},
                                          {3, 3},
                                          {4, 7},
                                          {7, 8},
                                          {31, 33},
                                          {112, 112}}) {
        for (const std::int64_t images : {1, 3}) {
          compare(maps({images, channels, height, width}, type));
        }
      }
    }
  }
}

TEST_F(CudaPool, TakesWhatIsNoNumberAsLibTorchDoes) {
  const at::Tensor input = maps({2, 8, 9, 9}, at::kFloat);
  using Limits = std::numeric_limits<float>;
  const at::Tensor values = input.permute({0, 2, 3, 1}).view({-1});
  values.slice(0, 3, {}, 11).fill_(Limits::quiet_NaN());
  values.slice(0, 5, {}, 17).fill_(Limits::infinity());
  compare(input);
  // Where all of a window is -inf, LibTorch's layouts differ in whom the gradient goes to.
  const at::Tensor least = at::full_like(input, -Limits::infinity());
  EXPECT_TRUE(at::equal(cuda_pool(least), theirs(least)));
}

TEST_F(CudaPool, LeavesOtherLayoutsTypesAndWidthsToLibTorch) {
  const at::Tensor good = maps({2, 8, 4, 4}, at::kFloat);
  EXPECT_TRUE(cuda_pool(good).defined());
  EXPECT_FALSE(cuda_pool(good.contiguous()).defined());
  EXPECT_FALSE(cuda_pool(good.to(at::kHalf)).defined());
  EXPECT_FALSE(cuda_pool(good.cpu()).defined());
  EXPECT_FALSE(cuda_pool(maps({2, 6, 4, 4}, at::kFloat)).defined());
  EXPECT_FALSE(cuda_pool(maps({0, 8, 4, 4}, at::kFloat)).defined());
}

}  // namespace
}  // namespace gala
