// The CUDA kernels against the CPU's, step by step.
#include <cmath>

#include "gala/base/random.h"
#include "tests/cuda/device.h"
#include "tests/optim/bench.h"

namespace gala {
namespace {

class CudaSweepTest : public OnCuda {};

/// The bench of the CPU's tests, moved to the GPU.
struct CudaBench {
  ParameterArena arena;
  LayerPartition layers;
  Displacement displacement;
  std::unique_ptr<Optimizer> optimizer;

  static std::vector<NamedTensor> parameters() {
    std::vector<NamedTensor> named = bench_parameters(21);
    for (NamedTensor& parameter : named) parameter.tensor = parameter.tensor.to(at::kCUDA);
    return named;
  }
  CudaBench(const std::string& spec, DisplacementForm form, Anchor anchor, bool sum_values = true)
      : arena(parameters()),
        layers(bench_layers(arena)),
        displacement(arena, form, anchor),
        optimizer(make_optimizer(Spec::parse(spec))) {
    optimizer->attach(arena, layers, sum_values);
  }
  static Gradients moved(const Gradients& gradients) {
    Gradients result;
    for (const at::Tensor& gradient : gradients.tensors) {
      result.tensors.push_back(gradient.defined() ? gradient.to(at::kCUDA) : at::Tensor());
    }
    return result;
  }
  std::vector<LayerSums> measure(const Gradients& given, float loss = 0) {
    const auto rows = static_cast<std::int64_t>(layers.size());
    const auto device = at::TensorOptions(at::kCUDA);
    const at::Tensor table = at::zeros({rows, kSumColumns}, device.dtype(at::kDouble));
    optimizer->prepare();
    optimizer->measure(moved(given), at::full({}, loss, device), displacement, table);
    const at::Tensor host = table.cpu();
    std::vector<LayerSums> sums;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      sums.push_back(read_sums(host.const_data_ptr<double>() + l * kSumColumns, layers[l].count));
    }
    return sums;
  }
  State state() const {
    State result;
    arena.save(arena.values(), "values/", result);
    displacement.save(arena, result);
    optimizer->save(arena, result);
    return result;
  }
};

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
    for (const auto form : {DisplacementForm::kSum, DisplacementForm::kDifference}) {
      for (const auto& [anchor, sum_values] : {std::pair{Anchor::kWindow, true},
                                               {Anchor::kWindow, false},
                                               {Anchor::kPrevious, true}}) {
        Bench cpu(spec, form, anchor);
        CudaBench cuda(spec, form, anchor, sum_values);
        Random random(31, "weights");
        for (int step = 1; step <= 30; ++step) {
          if (step % 7 == 0) {
            cpu.displacement.open_window(cpu.arena);
            cuda.displacement.open_window(cuda.arena);
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
          cuda.optimizer->apply(CudaBench::moved(gradients), cuda.displacement, weights);
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
  CudaBench cuda("adam:rate=0.01", DisplacementForm::kSum, Anchor::kWindow);
  const Bench source("sgd");
  for (int step = 0; step < 3; ++step) {
    cuda.measure(source.gradients(step));
    cuda.optimizer->apply(CudaBench::moved(source.gradients(step)), cuda.displacement,
                          std::vector<double>{1, 1, 1, 1});
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
  constexpr const char* kSpec = "adam:rate=0.01,moments=selected";
  Bench cpu(kSpec);
  CudaBench cuda(kSpec, DisplacementForm::kSum, Anchor::kWindow);
  const std::vector<double> weights(cpu.layers.size(), 1.0);
  for (int step = 0; step < 5; ++step) {
    const Gradients gradients = cpu.gradients(step);
    cpu.optimizer->prepare();
    cpu.optimizer->apply(gradients, cpu.displacement, weights);
    cuda.optimizer->prepare();
    cuda.optimizer->apply(CudaBench::moved(gradients), cuda.displacement, weights);
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
      const auto optimizer = make_optimizer(Spec::parse("adam:rate=0.01"));
      optimizer->attach(*arena, layers, false);
      const Displacement displacement(*arena, DisplacementForm::kSum, Anchor::kWindow);
      optimizer->prepare();
      const Gradients& given = arena == &cpu ? gradients : moved_gradients;
      const auto options = arena->values().options();
      const at::Tensor table = at::zeros({tensors, kSumColumns}, options.dtype(at::kDouble));
      optimizer->measure(given, at::zeros({}, options), displacement, table);
      optimizer->apply(given, displacement, weights);
    }
    // Where there are more than a kernel takes, LibTorch's operations do the work.
    EXPECT_TRUE(at::allclose(cuda.values().cpu(), cpu.values(), 1e-6, 1e-7)) << tensors;
  }
}

}  // namespace
}  // namespace gala
