// The whole loop on a GPU, against the CPU and against itself.
#include <cmath>
#include <limits>

#include "tests/cuda/adapter_case.h"

namespace gala {
namespace {

TEST_F(CudaAdapter, TimesThePhasesOfAnswersToo) {
  const auto network = model("batch");
  Adapter adapter(*network, {.select = "none"}, {.profile = true});
  for (std::uint64_t step = 0; step < 3; ++step) EXPECT_NO_THROW(adapter.answer(images(8, step)));
}

/// The GPU's convolutions round otherwise, so runs part after a while; the first steps must not.
TEST_F(CudaAdapter, BeginsAsTheCpuDoes) {
  const auto on_cpu = model("batch", at::kCPU), on_cuda = model("batch");
  Adapter cpu(*on_cpu, {.select = "all"}), cuda(*on_cuda, {.select = "all"});
  for (std::uint64_t step = 0; step < 4; ++step) {
    const at::Tensor batch = images(16, step);
    const Answer a = cpu.answer(batch), b = cuda.answer(batch);
    EXPECT_TRUE(at::allclose(b.logits.cpu(), a.logits, 1e-2, 1e-2)) << step;
    EXPECT_NEAR(b.steps[0].loss, a.steps[0].loss, 2e-2 * std::abs(a.steps[0].loss) + 1e-3);
    EXPECT_NEAR(b.steps[0].gradient_norm, a.steps[0].gradient_norm,
                0.05 * a.steps[0].gradient_norm + 1e-6);
  }
}

TEST_F(CudaAdapter, ARefusedStepChangesNothing) {
  const auto network = model("running");
  Adapter adapter(*network, {.loss = "entropy"});
  for (std::uint64_t step = 0; step < 4; ++step) adapter.answer(images(8, step));
  const State before = adapter.save();
  at::Tensor broken = images(8, 9);
  broken[3][1][5][5] = std::numeric_limits<float>::quiet_NaN();
  const Answer answer = adapter.answer(broken);
  ASSERT_TRUE(answer.steps[0].refused);
  const State after = adapter.save();
  for (const auto& [name, tensor] : before.tensors) {
    EXPECT_TRUE(at::equal(tensor, after.tensors.at(name))) << name;
  }
}

TEST_F(CudaAdapter, GoesOnFromASavedStateBitForBit) {
  const auto first = model("batch"), second = model("batch");
  Adapter whole(*first, {.loss = "shot"});
  for (std::uint64_t step = 0; step < 8; ++step) whole.answer(images(8, step));
  const State state = whole.save();
  Adapter resumed(*second, {.loss = "shot"});
  resumed.load(state);
  for (std::uint64_t step = 8; step < 30; ++step) {
    ASSERT_TRUE(
        at::equal(whole.answer(images(8, step)).logits, resumed.answer(images(8, step)).logits));
  }
}

TEST_F(CudaAdapter, TimesThePhasesOfRecordedStepsWhereAsked) {
  const auto network = model("batch");
  Adapter adapter(*network, {.loss = "shot"}, {.profile = true});
  Answer answer;
  for (std::uint64_t step = 0; step < 5; ++step) answer = adapter.answer(images(32, step));
  const StepTimes& times = answer.steps[0].times;
  EXPECT_GT(times.forward, 0);
  EXPECT_GT(times.backward, 0);
  EXPECT_GT(times.measure, 0);
}

TEST_F(CudaAdapter, ResNetTakesTheSameStepsEveryTimeWhereAsked) {
  std::vector<at::Tensor> ends;
  for (int time = 0; time < 2; ++time) {
    const auto network = model("source", at::kCUDA, "resnet18:classes=7");
    network->set_memory_format(at::MemoryFormat::ChannelsLast);
    Adapter adapter(*network, {.loss = "shot", .select = "all"});
    Answer answer;
    for (std::uint64_t step = 0; step < 6; ++step) answer = adapter.answer(images(8, step));
    EXPECT_EQ(adapter.capture_problem(), "");
    ends.push_back(answer.logits);
  }
  EXPECT_TRUE(at::equal(ends[0], ends[1]));
}

TEST_F(CudaAdapter, ResNetRunsInEveryPrecisionAndLayout) {
  for (const auto precision : {Precision::kFloat32, Precision::kTf32, Precision::kBf16}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      set_deterministic(false);
      const auto network = model("source", at::kCUDA, "resnet18:classes=7");
      network->set_precision(precision);
      allow_tf32(precision);
      network->set_memory_format(format);
      Adapter adapter(*network, {.loss = "shot"});
      for (std::uint64_t step = 0; step < 4; ++step) {
        const Answer answer = adapter.answer(at::randn({4, 3, 64, 64}));
        EXPECT_FALSE(answer.steps[0].refused);
      }
      EXPECT_EQ(adapter.capture_problem(), "");
    }
  }
  allow_tf32(Precision::kFloat32);
}

}  // namespace
}  // namespace gala
