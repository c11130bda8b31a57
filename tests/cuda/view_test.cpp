// Views on a GPU: our kernels against the host's loops, and captured looks with fresh draws.
#include "gala/view/view.h"

#include "tests/cuda/device.h"

namespace gala {
namespace {

class CudaView : public OnCuda {};

const std::vector<std::string> kSpecs = {"augment",
                                         "augment:padding=reflect,blur=no,noise=0",
                                         "augment:soft=yes,noise=0.1",
                                         "augment:padding=reflect",
                                         "patches",
                                         "patches:grid=3",
                                         "flip"};

std::unique_ptr<View> attached(const std::string& spec, at::Device device,
                               const Preprocessing& preprocessing) {
  auto view = make_view(spec);
  view->attach(device, preprocessing);
  return view;
}

Preprocessing some_preprocessing() {
  Preprocessing preprocessing = Preprocessing::imagenet();
  preprocessing.channels = "bgr";
  return preprocessing;
}

/// The host's loops and the kernels share their arithmetic; only the sum of greys has another order. Resizing is
/// LibTorch's.
constexpr double kTolerance = 2e-5, kResizedTolerance = 2e-4;

void expect_equal(const at::Tensor& found, const at::Tensor& expected,
                  double tolerance = kTolerance) {
  EXPECT_EQ(found.strides(), expected.strides());
  EXPECT_TRUE(at::allclose(found.cpu(), expected, 0, tolerance))
      << (found.cpu() - expected).abs().max().item<double>();
}

TEST_F(CudaView, IsTheHosts) {
  for (const std::string& spec : kSpecs) {
    const auto there = attached(spec, at::kCUDA, some_preprocessing());
    const auto here = attached(spec, at::kCPU, some_preprocessing());
    for (const auto& [count, height, width] :
         {std::tuple{200, 32, 32}, {1, 4, 4}, {3, 33, 47}, {2, 96, 224}, {5, 20, 5}}) {
      at::manual_seed(7);
      const at::Tensor images = at::randn({count, 3, height, width});
      for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        for (std::int64_t number = 0; number < 4; ++number) {
          SCOPED_TRACE(spec + " " + std::to_string(height) + " " + std::to_string(number));
          there->draw(1, number, 3);
          here->draw(1, number, 3);
          const at::Tensor laid_out = images.contiguous(format);
          expect_equal(there->look(laid_out.cuda(), 2), here->look(laid_out, 2),
                       spec == "patches:grid=3" ? kResizedTolerance : kTolerance);
        }
      }
    }
  }
}

TEST_F(CudaView, TakesABatchOfNothing) {
  for (const std::string& spec : kSpecs) {
    const auto view = attached(spec, at::kCUDA, {});
    view->draw(1, 1);
    const at::Tensor result = view->look(at::empty({0, 3, 8, 8}, at::TensorOptions(at::kCUDA)));
    EXPECT_EQ(result.size(0), 0);
    EXPECT_TRUE(result.is_cuda());
  }
}

TEST_F(CudaView, IsReplayedWithFreshDraws) {
  for (const std::string& spec : kSpecs) {
    SCOPED_TRACE(spec);
    const auto there = attached(spec, at::kCUDA, some_preprocessing());
    const auto here = attached(spec, at::kCPU, some_preprocessing());
    at::manual_seed(8);
    const at::Tensor images = at::randn({20, 3, 40, 32});  // more than a block's pixels
    const at::Tensor input = images.cuda();
    const auto queue = WorkQueue::make(at::kCUDA);
    const auto scope = queue->enter();
    there->draw(2, 0, 2);
    there->look(input, 0);
    queue->wait();
    at::Tensor first, second;
    const auto work = queue->capture([&] {
      first = there->look(input, 0);
      second = there->look(input, 1);
    });
    for (std::int64_t number = 0; number < 5; ++number) {
      there->draw(2, number, 2);
      here->draw(2, number, 2);
      work->replay();
      queue->wait();
      expect_equal(first, here->look(images, 0));
      expect_equal(second, here->look(images, 1));
    }
  }
}

}  // namespace
}  // namespace gala
