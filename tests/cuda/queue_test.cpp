#include <stdexcept>

#include "gala/base/error.h"
#include "tests/cuda/device.h"

namespace gala {
namespace {

class CudaQueueTest : public OnCuda {};

TEST_F(CudaQueueTest, IsWaitedForWhenAnExceptionLeavesIt) {
  const auto queue = WorkQueue::make(at::kCUDA);
  const at::Tensor ones = at::ones({4096, 4096}, at::TensorOptions(at::kCUDA));
  const at::Tensor host = at::zeros({1}, at::TensorOptions().pinned_memory(true));
  const auto break_off = [&] {
    const auto scope = queue->enter();
    at::Tensor product = ones;
    for (int i = 0; i < 40; ++i) product = at::mm(ones, product).div_(4096);
    const WorkQueue::Brought corner{product.flatten().slice(0, 0, 1), host};
    queue->bring({&corner, 1});
    throw std::runtime_error("while the work goes on");
  };
  EXPECT_THROW(break_off(), std::runtime_error);
  EXPECT_EQ(*host.const_data_ptr<float>(), 1);
}

TEST_F(CudaQueueTest, BringsOnlyToAPlaceOfTheSameSize) {
  const auto queue = WorkQueue::make(at::kCUDA);
  const auto scope = queue->enter();
  const WorkQueue::Brought parts{at::zeros({3}, at::TensorOptions(at::kCUDA)),
                                 at::zeros({2}, at::TensorOptions().pinned_memory(true))};
  EXPECT_THROW(queue->bring(std::span(&parts, 1)), Error);
}

}  // namespace
}  // namespace gala
