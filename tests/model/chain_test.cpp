#include "gala/model/chain.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "gala/base/random.h"
#include "gala/model/layout.h"

namespace gala {
namespace {

constexpr const char* kNetworks[] = {"wide_resnet:depth=16,width=1,classes=5", "resnet18:classes=4",
                                     "resnext29:base_width=4,classes=6"};
constexpr const char* kNormModes[] = {"source", "batch", "blend:weight=0.3", "running"};

at::Tensor images(std::int64_t count) {
  Random random(3, "images");
  at::Tensor result = at::empty({count, 3, 32, 32}, at::kFloat);
  float* data = result.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) data[i] = static_cast<float>(random.normal());
  return result;
}

TEST(Chain, APassFromTheMiddleGivesTheLogitsOfAWholeOne) {
  const c10::NoGradGuard no_grad;
  const at::Tensor batch = images(4);
  for (const char* spec : kNetworks) {
    for (const char* norm : kNormModes) {
      const auto model = make_model(Spec::parse(spec), 1);
      model->set_norm_mode(NormMode::parse(norm));
      model->keep_activations(true);
      const Output before = model->forward(batch);
      // A prime step visits convolutions, scales and shifts of all stages alike.
      for (std::size_t i = 0; i < model->parameters().size(); i += 7) {
        Parameter& parameter = model->parameters()[i];
        const at::Tensor kept = parameter.value.clone();
        parameter.value.mul_(1.5).add_(0.1);
        const at::Tensor again = model->forward_again(before, batch, parameter.stage).logits;
        const at::Tensor whole = model->forward(batch, /*update_statistics=*/false).logits;
        ASSERT_TRUE(at::equal(again, whole)) << spec << ' ' << norm << ' ' << parameter.name;
        ASSERT_FALSE(at::equal(again, before.logits)) << parameter.name << " must matter";
        parameter.value.copy_(kept);
      }
    }
  }
}

TEST(Chain, APassRunsWholeWhereNothingWasKept) {
  const c10::NoGradGuard no_grad;
  const auto model = make_model(Spec::parse(kNetworks[0]), 1);
  const Output before = model->forward(images(2));
  EXPECT_TRUE(before.stage_inputs.empty());
  model->parameters().front().value.mul_(2);
  EXPECT_TRUE(at::equal(model->forward_again(before, images(2), 3).logits,
                        model->forward(images(2)).logits));
}

TEST(Chain, Bfloat16StaysNearFloat32AndAnswersInFloat32) {
  const at::Tensor batch = images(8);
  for (const char* spec : kNetworks) {
    for (const char* norm : kNormModes) {
      const auto model = make_model(Spec::parse(spec), 1);
      model->set_norm_mode(NormMode::parse(norm));
      for (Parameter& parameter : model->parameters()) parameter.value.requires_grad_();
      const at::Tensor exact = model->forward(batch, false).logits.detach();
      model->set_precision(Precision::kBf16);
      const Output rounded = model->forward(batch, false);
      ASSERT_EQ(rounded.logits.scalar_type(), at::kFloat);
      ASSERT_EQ(rounded.features.scalar_type(), at::kFloat);
      const double difference = (rounded.logits - exact).abs().max().item<double>();
      EXPECT_GT(difference, 0) << spec << ": bfloat16 must have been used";
      EXPECT_LT(difference, 0.08 * exact.abs().max().item<double>() + 0.02) << spec << ' ' << norm;
      rounded.logits.sum().backward();
      for (const Parameter& parameter : model->parameters()) {
        ASSERT_EQ(parameter.value.grad().scalar_type(), at::kFloat) << parameter.name;
      }
    }
  }
}

TEST(Layout, MovesResultsByRoundingOnly) {
  const c10::NoGradGuard no_grad;
  for (const char* spec : kNetworks) {
    const auto model = make_model(Spec::parse(spec), 1);
    const at::Tensor exact = model->forward(images(4)).logits;
    set_layout(*model, Layout::kChannelsLast, {4, 3, 32, 32});
    EXPECT_TRUE(model->parameters().front().value.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(at::allclose(model->forward(images(4)).logits, exact, 1e-4, 1e-5)) << spec;
  }
}

TEST(Layout, IsContiguousOnTheCpuUnlessAskedFor) {
  const auto model = make_model(Spec::parse(kNetworks[0]), 1);
  set_layout(*model, Layout::kChannelsLast, {});
  set_layout(*model, Layout::kAuto, {});
  EXPECT_EQ(model->memory_format(), at::MemoryFormat::Contiguous);
}

TEST(Layout, TheTrialLeavesParametersStatisticsAndModeAlone) {
  const auto model = make_model(Spec::parse(kNetworks[0]), 1);
  const auto untouched = make_model(Spec::parse(kNetworks[0]), 1);
  model->set_norm_mode(NormMode::parse("running"));
  set_layout(*model, Layout::kFastest, {4, 3, 32, 32});
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(model->parameters()[i].value, untouched->parameters()[i].value));
    EXPECT_FALSE(model->parameters()[i].value.requires_grad());
  }
  for (std::size_t i = 0; i < model->buffers().size(); ++i) {
    EXPECT_TRUE(at::equal(model->buffers()[i].value, untouched->buffers()[i].value));
  }
}

}  // namespace
}  // namespace gala
