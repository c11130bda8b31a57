// Batch normalisation whose batch lies in several processes, beside LibTorch's over the whole batch.
#include "gala/model/shared_norm.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "gala/model/norm.h"
#include "tests/device/thread_processes.h"
#include "tests/model/relative_error.h"

namespace gala {
namespace {

constexpr double kEpsilon = 1e-5, kMomentum = 0.1;
constexpr std::int64_t kChannels = 5;

/// What a norm layer has, and what is asked of it.
struct Layer {
  at::Tensor input, scale, shift, mean, variance, output_gradient;
  at::Tensor output;

  Layer(std::int64_t images, std::int64_t side, at::ScalarType type, at::MemoryFormat format) {
    at::manual_seed(3);
    // Far from zero and of different spreads: sums of squares alone would lose digits.
    const at::Tensor offset = at::arange(kChannels).view({1, -1, 1, 1}) * 3.0;
    input = (at::randn({images, kChannels, side, side}) * (offset + 0.5) + 4 * offset)
                .to(type)
                .contiguous(format);
    scale = at::rand({kChannels}) + 0.5;
    shift = at::randn({kChannels});
    mean = at::randn({kChannels});
    variance = at::rand({kChannels}) + 0.5;
    output_gradient = at::randn_like(input);
  }

  void ask_for_gradients() {
    for (at::Tensor* tensor : {&input, &scale, &shift}) {
      *tensor = tensor->detach().clone().set_requires_grad(true);
    }
  }
};

void expect_the_whole_batch(int processes, std::int64_t images, std::int64_t side,
                            at::ScalarType type, at::MemoryFormat format, double tolerance) {
  Layer whole(images * processes, side, type, format);
  const Layer given = whole;
  whole.ask_for_gradients();
  whole.mean = given.mean.clone();
  whole.variance = given.variance.clone();
  const c10::AutoGradMode with_gradients(true);
  whole.output = at::batch_norm(whole.input, whole.scale, whole.shift, whole.mean, whole.variance,
                                /*training=*/true, kMomentum, kEpsilon, /*cudnn_enabled=*/false);
  whole.output.backward(given.output_gradient);

  std::vector<Layer> parts(static_cast<std::size_t>(processes), given);
  const auto errors = test::run_processes(processes, [&](ProcessGroup& group) {
    const c10::AutoGradMode with_gradients_here(true);
    Layer& part = parts[static_cast<std::size_t>(group.rank())];
    const auto own = [&](const at::Tensor& all) {
      return all.narrow(0, group.rank() * images, images).contiguous(format);
    };
    part.input = own(given.input);
    part.ask_for_gradients();
    part.mean = given.mean.clone();
    part.variance = given.variance.clone();
    const NormMode training{.kind = NormKind::kTraining, .momentum = kMomentum};
    part.output = batch_norm(part.input, part.scale, part.shift, part.mean, part.variance, training,
                             kEpsilon, /*update_statistics=*/true, {}, {}, {}, &group);
    part.output.backward(own(given.output_gradient));
  });
  for (const std::string& error : errors) ASSERT_EQ(error, "");

  std::vector<at::Tensor> outputs, input_gradients;
  at::Tensor scale_gradient = at::zeros({kChannels}), shift_gradient = at::zeros({kChannels});
  for (const Layer& part : parts) {
    outputs.push_back(part.output.detach());
    input_gradients.push_back(part.input.grad());
    scale_gradient += part.scale.grad();
    shift_gradient += part.shift.grad();
    EXPECT_LT(relative_error(part.mean, whole.mean), 1e-6);
    EXPECT_LT(relative_error(part.variance, whole.variance), 1e-6);
    EXPECT_EQ(part.output.scalar_type(), type);
  }
  EXPECT_LT(relative_error(at::cat(outputs), whole.output), tolerance);
  EXPECT_LT(relative_error(at::cat(input_gradients), whole.input.grad()), tolerance);
  EXPECT_LT(relative_error(scale_gradient, whole.scale.grad()), tolerance);
  EXPECT_LT(relative_error(shift_gradient, whole.shift.grad()), tolerance);
}

TEST(SharedNorm, IsTheNormOfTheWholeBatch) {
  for (const int processes : {2, 3}) {
    expect_the_whole_batch(processes, 4, 6, at::kFloat, at::MemoryFormat::Contiguous, 1e-5);
    expect_the_whole_batch(processes, 4, 6, at::kFloat, at::MemoryFormat::ChannelsLast, 1e-5);
  }
}

TEST(SharedNorm, TakesOneValueAChannelFromEachProcess) {
  expect_the_whole_batch(3, 1, 1, at::kFloat, at::MemoryFormat::Contiguous, 1e-5);
}

TEST(SharedNorm, TakesBfloat16) {
  // Maps have 8 bits, and an error of half of the last in each number; statistics are float32.
  expect_the_whole_batch(2, 4, 6, at::kBFloat16, at::MemoryFormat::Contiguous, 1e-2);
}

TEST(SharedNorm, LeavesTheStatisticsWhereTheyShallStay) {
  const Layer given(4, 3, at::kFloat, at::MemoryFormat::Contiguous);
  const auto errors = test::run_processes(2, [&](ProcessGroup& group) {
    at::Tensor mean = given.mean.clone(), variance = given.variance.clone();
    const at::Tensor own = given.input.narrow(0, 2 * group.rank(), 2);
    batch_norm(own, given.scale, given.shift, mean, variance, {.kind = NormKind::kTraining},
               kEpsilon, /*update_statistics=*/false, {}, {}, {}, &group);
    EXPECT_TRUE(at::equal(mean, given.mean));
    EXPECT_TRUE(at::equal(variance, given.variance));
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

}  // namespace
}  // namespace gala
