// The CUDA kernels against the CPU's, step by step.
#include <cmath>

#include "gala/base/random.h"
#include "tests/cuda/device.h"
#include "tests/optim/bench.h"

namespace gala {
namespace {

class CudaSweepTest : public OnCuda {};

/// The bench of the CPU's tests, on the GPU.
Bench cuda_bench(const std::string& spec, DisplacementForm form = DisplacementForm::kSum,
                 Anchor anchor = Anchor::kWindow, bool sum_values = true) {
  return Bench(spec, form, anchor, at::kCUDA, sum_values);
}

void expect_near(double value, double expected, double scale, const char* what) {
  EXPECT_NEAR(value, expected, 1e-13 * scale) << what;
}

constexpr const char* kOptimizers[] = {"adam:rate=0.01",
                                       "adam:rate=0.01,weight_decay=0.05,moments=selected",
                                       "sgd:rate=0.1,momentum=0.9,weight_decay=0.05",
                                       "sgd:rate=0.1,momentum=0.9,nesterov=yes,moments=selected"};

/// Products and quotients are not fused on either side: parameters, moments and displacement are the
/// same bits, and the sums differ by the order of double additions.
TEST_F(CudaSweepTest, MovesTheSameBitsAsTheCpu) {
  for (const char* spec : kOptimizers) {
    for (const auto form :
         {DisplacementForm::kSum, DisplacementForm::kDifference, DisplacementForm::kProposed}) {
      for (const auto& [anchor, sum_values] : {std::pair{Anchor::kWindow, true},
                                               {Anchor::kWindow, false},
                                               {Anchor::kPrevious, true}}) {
        Bench cpu(spec, form, anchor);
        Bench cuda = cuda_bench(spec, form, anchor, sum_values);
        Random random(31, "weights");
        for (int step = 1; step <= 30; ++step) {
          if (step % 7 == 0) {
            cpu.displacement.open_window();
            cuda.displacement.open_window();
          }
          Gradients gradients = cpu.gradients(step);
          if (step % 3 == 0) gradients.tensors[static_cast<std::size_t>(step) % 6] = at::Tensor();
          std::vector<double> weights;
          for (std::size_t l = 0; l < cpu.layers.size(); ++l) {
            weights.push_back(std::array{0.0, 0.01, 1.0}[random.below(3)]);
          }
          if (step % 4 == 0) weights = {0, 0, 1, 0};
          if (step % 5 == 0) weights = {0.5, 0.5, 0.5, 0.5};
          const auto expected = cpu.step(gradients, weights);
          const auto sums = cuda.measure(gradients);
          cuda.apply(gradients, weights);
          for (std::size_t l = 0; l < sums.size(); ++l) {
            const LayerSums& e = expected[l];
            expect_near(sums[l].update_sq, e.update_sq, e.update_sq, "update");
            expect_near(sums[l].update_dot_shift, e.update_dot_shift,
                        std::sqrt(e.update_sq * e.shift_sq), "product");
            expect_near(sums[l].shift_sq, e.shift_sq, e.shift_sq, "shift");
            expect_near(sums[l].gradient_sq, e.gradient_sq, e.gradient_sq, "gradient");
            if (sum_values) expect_near(sums[l].value_sq, e.value_sq, e.value_sq, "value");
          }
          ASSERT_TRUE(same_bytes(cuda.state(), cpu.state())) << spec << " step " << step;
        }
      }
    }
  }
}

TEST_F(CudaSweepTest, ChangesNothingWhereTheLossOrAGradientIsNotFinite) {
  Bench cuda = cuda_bench("adam:rate=0.01");
  const Bench source("sgd");
  for (int step = 0; step < 3; ++step) {
    cuda.step(source.gradients(step), {1, 1, 1, 1});
  }
  const State before = cuda.state();
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Gradients broken = source.gradients(3);
    broken.tensors[3].view(-1)[33000] = bad;
    EXPECT_FALSE(std::isfinite(cuda.measure(broken)[2].gradient_sq));
    EXPECT_TRUE(same_bytes(cuda.state(), before));
    cuda.measure(source.gradients(3), bad);
    EXPECT_TRUE(same_bytes(cuda.state(), before));
  }
  cuda.measure(source.gradients(3));
  EXPECT_FALSE(same_bytes(cuda.state(), before));
}

/// As in training: the moments advance when the layers move.
TEST_F(CudaSweepTest, MovesTheSameBitsWhereNobodyMeasures) {
  Bench cpu("adam:rate=0.01"), cuda = cuda_bench("adam:rate=0.01");
  for (int step = 0; step < 5; ++step) {
    const Gradients gradients = cpu.gradients(step), moved = cuda.moved(gradients);
    cpu.optimizer->step(gradients.pointers());
    cuda.optimizer->step(moved.pointers());
    ASSERT_TRUE(same_bytes(cuda.state(), cpu.state())) << step;
  }
}

/// Thousands of small tensors, more than the small table of pointers holds.
TEST_F(CudaSweepTest, TakesManyTensors) {
  for (const int tensors : {300, 1500, 4500}) {
    std::vector<NamedTensor> named, moved;
    LayerPartition layers;
    at::manual_seed(1);
    Gradients gradients, moved_gradients;
    for (int i = 0; i < tensors; ++i) {
      const at::Tensor value = at::randn({1 + i % 37});
      named.push_back({std::to_string(i), value});
      moved.push_back({std::to_string(i), value.to(at::kCUDA)});
      layers.layers.push_back({std::to_string(i), {static_cast<std::size_t>(i)}, value.numel()});
      gradients.tensors.push_back(at::randn_like(value));
      moved_gradients.tensors.push_back(gradients.tensors.back().to(at::kCUDA));
    }
    const ParameterArena cpu(named), cuda(moved);
    const std::vector<double> weights(static_cast<std::size_t>(tensors), 1.0);
    for (const ParameterArena* arena : {&cpu, &cuda}) {
      const auto optimizer = make_optimizer("adam:rate=0.01");
      TorchWorkspace workspace(arena->values().device());
      float* values = arena->values().mutable_data_ptr<float>();
      optimizer->attach({arena->layout(), layers, values, workspace});
      const Displacement displacement(values, arena->size(), workspace, DisplacementForm::kSum,
                                      Anchor::kWindow);
      optimizer->prepare();
      const Gradients& given = arena == &cpu ? gradients : moved_gradients;
      const auto options = arena->values().options();
      const at::Tensor table = at::zeros({tensors, kSumColumns}, options.dtype(at::kDouble));
      const at::Tensor loss = at::zeros({}, options);
      optimizer->measure(given.pointers(), loss.const_data_ptr<float>(), displacement.view(),
                         table.mutable_data_ptr<double>());
      optimizer->apply(given.pointers(), displacement.view(), weights);
    }
    // Where there are more than a kernel takes, LibTorch's operations do the work.
    EXPECT_TRUE(at::allclose(cuda.values().cpu(), cpu.values(), 1e-6, 1e-7)) << tensors;
  }
}

}  // namespace
}  // namespace gala
