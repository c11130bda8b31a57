// What recorded adapters hold of a GPU's memory: they share it, give it on, and do without a recording
// where it does not suffice.
#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <cmath>

#include "gala/adapt/adapter.h"
#include "gala/model/layout.h"
#include "tests/cuda/device.h"

namespace gala {
namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

class CudaMemory : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    set_deterministic(false);
    allow_tf32(Precision::kFloat32);
    memory().emptyCache();
  }
  void TearDown() override { set_deterministic(false); }

  static c10::DeviceAllocator& memory() { return *at::getDeviceAllocator(at::kCUDA); }
  /// What the process has taken from the device, used or not.
  static std::int64_t reserved() { return memory().getDeviceStats(0).reserved_bytes[0].current; }
  static std::unique_ptr<Model> model() {
    auto result = make_model(Spec::parse("resnet18:classes=7"), 5);
    result->to(at::Device(at::kCUDA, 0));
    set_layout(*result, Layout::kChannelsLast, {});
    return result;
  }
  static at::Tensor images(std::int64_t count, std::uint64_t seed, std::int64_t size = 64) {
    at::manual_seed(seed);
    return at::rand({count, 3, size, size}).to(at::kCUDA);
  }
};

TEST_F(CudaMemory, DoesNotGrowWithAdaptersThatCameAndWent) {
  std::int64_t after_two = 0;
  for (int i = 0; i < 12; ++i) {
    const auto network = model();
    Adapter adapter(*network, {.loss = "shot", .inner_steps = 2});
    for (const std::int64_t count : {32, 32, 7, 7}) adapter.answer(images(count, 1));
    EXPECT_EQ(adapter.capture_problem(), "");
    if (i == 1) after_two = reserved();
  }
  EXPECT_EQ(reserved(), after_two);
}

/// They lie in the same memory, so each replay overwrites what the others left.
TEST_F(CudaMemory, RecordingsOfOneAdapterMayTakeTurns) {
  set_deterministic(true);
  for (const auto predict : {PredictWith::kAdapting, PredictWith::kAfter}) {
    MethodOptions options{.loss = "shot", .inner_steps = 2};
    options.predict = predict;
    const auto recorded_model = model(), plain_model = model();
    Adapter recorded(*recorded_model, options);
    Adapter plain(*plain_model, options, {.capture = false});
    std::vector<Answer> kept, expected;
    for (std::uint64_t step = 0; step < 24; ++step) {
      const at::Tensor batch = images(std::array{16, 5, 9}[step % 3], step);
      kept.push_back(recorded.answer(batch));
      expected.push_back(plain.answer(batch));
    }
    EXPECT_EQ(recorded.capture_problem(), "");
    for (std::size_t step = 0; step < kept.size(); ++step) {
      EXPECT_TRUE(at::equal(kept[step].logits, expected[step].logits)) << step;
    }
  }
}

/// Counts the passes that reach it.
class CountingLoss : public Loss {
 public:
  explicit CountingLoss(int& count) : count_(count) {}
  LossTerms evaluate(const LossInput& input) const override {
    ++count_;
    return inner_->evaluate(input);
  }
  bool adapts_head() const override { return inner_->adapts_head(); }

 private:
  int& count_;
  std::unique_ptr<Loss> inner_ = make_loss("shot");
};

/// All memory but a little is taken away before a pass is to be recorded; a little more each time, so that
/// recordings break off in the forward pass, then in the backward pass, then no more. A hook in the midst of
/// the network takes some on the way back: without it nothing there needs more than the forward pass.
TEST_F(CudaMemory, WhatDoesNotFitIsNotRecordedAndHarmsNobody) {
  constexpr std::int64_t kLittle = 32 * kMegabyte, kNeeded = 6000 * kMegabyte;
  const at::TensorOptions bytes = at::TensorOptions(at::kCUDA).dtype(at::kByte);
  const auto free_memory = [] {
    return static_cast<std::int64_t>(memory().getMemoryInfo(0).first);
  };
  if (free_memory() < kNeeded) GTEST_SKIP() << "too little memory is free";
  const at::Tensor batch = images(32, 1, 224), small = images(8, 2);
  const auto network = model();
  Adapter other(*network, {.loss = "shot"});
  for (int step = 0; step < 3; ++step) other.answer(small);
  // cuDNN's first trials give all memory that is free back to the device. After them a pass keeps its own
  // for the next, so that there is enough to go on without a recording.
  const auto tried_network = model();
  Adapter(*tried_network, {.loss = "shot"}).answer(batch);
  int in_forward = 0, in_backward = 0;
  for (bool recorded = false; !recorded;) {
    const auto tight_network = model();
    int passes = 0;
    Adapter tight(*tight_network, {}, {.parts = {.loss = std::make_unique<CountingLoss>(passes)}});
    at::Tensor held;
    for (const Parameter& parameter : tight_network->parameters()) {
      if (parameter.name != "layer3.0.conv1.weight") continue;
      parameter.value.register_hook(
          [&](const at::Tensor&) { held = at::empty({8 * kLittle}, bytes); });
    }
    const auto answer = [&] {
      EXPECT_TRUE(std::isfinite(tight.answer(batch).steps[0].loss));
      held = at::Tensor();
    };
    answer();
    {
      passes = 0;
      const std::int64_t left = (in_forward + in_backward + 4) * kLittle;
      const at::Tensor taken = at::empty({free_memory() - left}, bytes);
      answer();
    }
    memory().emptyCache();
    recorded = tight.capture_problem().empty();
    if (!recorded) ++(passes > 1 ? in_backward : in_forward);
    ASSERT_LT(in_forward + in_backward, 60) << tight.capture_problem();

    answer();
    EXPECT_TRUE(std::isfinite(other.answer(small).steps[0].loss));
    EXPECT_TRUE(at::isfinite(at::rand({1}, at::TensorOptions(at::kCUDA))).all().item<bool>());
    const auto new_network = model();
    Adapter newcomer(*new_network, {.loss = "shot"});
    for (int step = 0; step < 3; ++step) newcomer.answer(small);
    EXPECT_EQ(newcomer.capture_problem(), "");
  }
  EXPECT_GT(in_forward, 0);
  EXPECT_GT(in_backward, 0);
}

}  // namespace
}  // namespace gala
