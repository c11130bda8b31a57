#include <gtest/gtest.h>

#include <set>

#include "gala/optim/adam.h"
#include "gala/select/gala.h"
#include "gala/step/stepper.h"
#include "gala/tensor/torch_workspace.h"
#include "tests/adapt/reference_gala.h"
#include "tests/adapt/toy.h"

// The library against a plain implementation that shares no code with it.

namespace gala {
namespace {

std::vector<float> to_floats(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

/// Layers of one or two tensors of unequal sizes, some larger than a chunk of the kernel.
struct Problem {
  std::vector<NamedTensor> named;
  LayerPartition layers;

  Problem() {
    const std::vector<std::vector<std::int64_t>> sizes = {
        {40000}, {8, 3, 3, 3}, {17}, {17}, {64, 30}};
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      named.push_back({fmt::format("t{}", t), at::ones(sizes[t])});
    }
    const std::vector<std::vector<std::size_t>> groups = {{0}, {1}, {2, 3}, {4}};
    for (std::size_t l = 0; l < groups.size(); ++l) {
      Layer layer{fmt::format("l{}", l), groups[l], 0};
      for (const std::size_t t : groups[l]) layer.count += named[t].tensor.numel();
      layers.layers.push_back(layer);
    }
  }

  /// Gradients whose direction drifts, each tensor with signal and noise of its own.
  Gradients gradients(int step) const {
    Gradients result;
    for (std::size_t t = 0; t < named.size(); ++t) {
      Random random(3, "gradient", {static_cast<std::uint64_t>(step), t}), fixed(4, "signal", {t});
      at::Tensor gradient = at::empty_like(named[t].tensor);
      float* data = gradient.mutable_data_ptr<float>();
      const double noise = 0.3 + 0.5 * static_cast<double>(t);
      const double turn = std::cos(0.05 * step * static_cast<double>(t + 1));
      for (std::int64_t i = 0; i < gradient.numel(); ++i) {
        data[i] = static_cast<float>(turn * fixed.normal() + noise * random.normal());
      }
      result.tensors.push_back(gradient);
    }
    return result;
  }
};

/// 60 steps on given gradients; every choice must agree where the gap decides.
void compare_on_given_gradients(double opening_scale, double threshold, int least_compared) {
  const Problem problem;
  ParameterArena arena(problem.named);
  Stepper stepper(arena.layout(), arena.values().mutable_data_ptr<float>(), problem.layers,
                  std::make_unique<Adam>(Adam::Options{}),
                  std::make_unique<GalaSelector>(GalaSelector::Options{
                      .threshold = threshold, .opening_scale = opening_scale}),
                  std::make_unique<TorchWorkspace>(at::kCPU));
  gala_reference::Gala reference{
      .threshold = threshold, .opening_scale = opening_scale, .layers = {}, .parameters = {}};
  for (const Layer& layer : problem.layers.layers) reference.layers.push_back(layer.tensors);
  for (const auto& [name, tensor] : problem.named)
    reference.parameters.push_back(to_floats(tensor));

  int compared = 0;
  std::set<int> chosen;
  for (int step = 1; step <= 60; ++step) {
    const Gradients gradients = problem.gradients(step);
    constexpr float kLoss = 0;
    const StepRecord record = stepper.step(gradients.pointers(), &kLoss);
    std::vector<double> weights;
    for (const LayerRecord& layer : record.layers) weights.push_back(layer.weight);

    std::vector<std::vector<float>> plain;
    for (const at::Tensor& gradient : gradients.tensors) plain.push_back(to_floats(gradient));
    const auto choice = reference.adapt(plain);
    for (std::size_t l = 0; l < weights.size(); ++l) {
      ASSERT_NEAR(record.layers[l].cosine, choice.cosines[l], 2e-6)
          << "step " << step << " layer " << l;
    }
    if (choice.opening) {
      ASSERT_EQ(weights, std::vector<double>(weights.size(), opening_scale));
      continue;
    }
    if (choice.gap < 1e-5) break;  // from here on two correct programs may part
    std::vector<double> expected(weights.size(), 0.0);
    if (choice.layer >= 0) expected[static_cast<std::size_t>(choice.layer)] = 1;
    ASSERT_EQ(weights, expected) << "step " << step;
    chosen.insert(choice.layer);
    ++compared;
  }
  EXPECT_GE(compared, least_compared);
  EXPECT_GE(chosen.size(), 2u);  // a rule that always says the same would prove nothing
  for (std::size_t t = 0; compared == 57 && t < problem.named.size(); ++t) {
    const at::Tensor ours = arena.view(arena.values(), t);
    const auto theirs = at::from_blob(reference.parameters[t].data(), ours.sizes(), at::kFloat);
    EXPECT_LT((ours - theirs).abs().max().item<double>(), 5e-6) << problem.named[t].name;
  }
}

TEST(Reference, ChoosesTheSameLayersAfterAFullOpening) {
  compare_on_given_gradients(1, 0.75, 57);
}
TEST(Reference, ChoosesTheSameLayersAfterATenthOpening) {
  compare_on_given_gradients(0.1, 0.75, 40);
}
TEST(Reference, SkipsTheSameStepsUnderAHighThreshold) {
  compare_on_given_gradients(1, 0.99, 57);
}

/// The whole adapter on a network, against the reference fed by autograd on a second network.
TEST(Reference, MovesANetworkAsTheAdapterDoes) {
  auto model = toy_model(), twin = toy_model();
  Adapter adapter(*model, {.loss = "entropy", .select = "gala:opening_scale=1", .guard = "off"});
  gala_reference::Gala reference{.opening_scale = 1, .layers = {}, .parameters = {}};
  for (const Layer& layer : adapter.layers().layers) reference.layers.push_back(layer.tensors);
  for (const Parameter& parameter : twin->parameters()) {
    reference.parameters.push_back(to_floats(parameter.value));
  }
  int compared = 0;
  for (int step = 1; step <= 60; ++step) {
    const at::Tensor images = toy_images(step);
    std::size_t t = 0;
    for (Parameter& parameter : twin->parameters()) {
      parameter.value =
          at::from_blob(reference.parameters[t++].data(), parameter.value.sizes(), at::kFloat)
              .clone()
              .requires_grad_();
    }
    const at::Tensor log_p = at::log_softmax(twin->forward(images).logits, 1);
    (-(log_p.exp() * log_p).sum(1).mean()).backward();
    std::vector<std::vector<float>> gradients;
    for (const Parameter& parameter : twin->parameters())
      gradients.push_back(to_floats(parameter.value.grad()));
    const auto choice = reference.adapt(gradients);
    const Answer answer = adapter.answer(images);
    const StepRecord& record = answer.steps.at(0);
    if (choice.opening) continue;
    if (choice.gap < 1e-4) break;
    std::vector<std::size_t> expected;
    if (choice.layer >= 0) expected.push_back(static_cast<std::size_t>(choice.layer));
    ASSERT_EQ(record.selected(), expected) << "step " << step;
    EXPECT_NEAR(record.gap(), choice.gap, 1e-4);
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

}  // namespace
}  // namespace gala
