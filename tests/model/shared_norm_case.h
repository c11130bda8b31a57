#pragma once
// Batch normalisation whose batch lies in several processes, beside LibTorch's over the whole batch.
#include <ATen/ATen.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gala/model/norm.h"
#include "tests/device/thread_processes.h"
#include "tests/model/relative_error.h"

namespace gala::test {

/// What a norm layer has, and what is asked of it.
struct NormLayer {
  static constexpr double kEpsilon = 1e-5, kMomentum = 0.1;
  static constexpr std::int64_t kChannels = 5;

  at::Tensor input, scale, shift, mean, variance, output_gradient;
  at::Tensor output;

  NormLayer(std::int64_t images, std::int64_t side, at::ScalarType type, at::MemoryFormat format) {
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

  void ask_for_gradients(at::Device device) {
    for (at::Tensor* tensor : {&input, &scale, &shift}) {
      *tensor = tensor->detach().to(device).clone().set_requires_grad(true);
    }
  }
};

/// What each of the processes leaves for its images on the device is what LibTorch leaves for all of them on the host.
inline void expect_the_whole_batch(int processes, std::int64_t images, std::int64_t side,
                                   at::ScalarType type, at::MemoryFormat format, double tolerance,
                                   at::Device device = at::kCPU) {
  NormLayer whole(images * processes, side, type, format);
  const NormLayer given = whole;
  whole.ask_for_gradients(at::kCPU);
  whole.mean = given.mean.clone();
  whole.variance = given.variance.clone();
  const c10::AutoGradMode with_gradients(true);
  whole.output = at::batch_norm(whole.input, whole.scale, whole.shift, whole.mean, whole.variance,
                                /*training=*/true, NormLayer::kMomentum, NormLayer::kEpsilon,
                                /*cudnn_enabled=*/false);
  whole.output.backward(given.output_gradient);

  std::vector<NormLayer> parts(static_cast<std::size_t>(processes), given);
  const auto errors = run_processes(processes, [&](ProcessGroup& group) {
    const c10::AutoGradMode with_gradients_here(true);
    // LibTorch has one thread for a device's ways back: there one process would wait for another behind it.
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    NormLayer& part = parts[static_cast<std::size_t>(group.rank())];
    const auto own = [&](const at::Tensor& all) {
      return all.narrow(0, group.rank() * images, images).contiguous(format).to(device);
    };
    part.input = own(given.input);
    part.ask_for_gradients(device);
    part.mean = given.mean.to(device).clone();
    part.variance = given.variance.to(device).clone();
    const NormMode training{.kind = NormKind::kTraining, .momentum = NormLayer::kMomentum};
    part.output = batch_norm(part.input, part.scale, part.shift, part.mean, part.variance, training,
                             NormLayer::kEpsilon, /*update_statistics=*/true, {}, {}, {}, &group);
    part.output.backward(own(given.output_gradient));
  });
  for (const std::string& error : errors) ASSERT_EQ(error, "");

  std::vector<at::Tensor> outputs, input_gradients;
  at::Tensor scale_gradient = at::zeros({NormLayer::kChannels});
  at::Tensor shift_gradient = at::zeros({NormLayer::kChannels});
  const double of_statistics = device.is_cpu() ? 1e-6 : 5e-6;
  for (const NormLayer& part : parts) {
    outputs.push_back(part.output.detach().cpu());
    input_gradients.push_back(part.input.grad().cpu());
    scale_gradient += part.scale.grad().cpu();
    shift_gradient += part.shift.grad().cpu();
    EXPECT_LT(relative_error(part.mean.cpu(), whole.mean), of_statistics);
    EXPECT_LT(relative_error(part.variance.cpu(), whole.variance), of_statistics);
    EXPECT_EQ(part.output.scalar_type(), type);
  }
  EXPECT_LT(relative_error(at::cat(outputs), whole.output), tolerance);
  EXPECT_LT(relative_error(at::cat(input_gradients), whole.input.grad()), tolerance);
  EXPECT_LT(relative_error(scale_gradient, whole.scale.grad()), tolerance);
  EXPECT_LT(relative_error(shift_gradient, whole.shift.grad()), tolerance);
}

}  // namespace gala::test
