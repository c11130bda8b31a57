// Files that networks start from: heads of other sizes, and RobustBench's input normalisation.
#include <gtest/gtest.h>

#include <memory>

#include "gala/model/safetensors.h"
#include "gala/model/weights.h"
#include "weight_files.h"

namespace gala {
namespace {

using namespace gala::testing;

std::unique_ptr<Model> network(int classes, std::uint64_t seed) {
  return make_model(Spec::parse(fmt::format("wide_resnet:depth=10,width=1,classes={}", classes)),
                    seed);
}

std::vector<NamedTensor> tensors_of(const Model& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.parameters()) tensors.push_back({item.name, item.value.detach()});
  for (const auto& item : model.buffers()) tensors.push_back({item.name, item.value});
  return tensors;
}

TEST(FirstWeights, KeepTheNetworksOwnHeadWhenTheClassesDiffer) {
  const ScratchFolder folder;
  const auto source = network(10, 1);
  Preprocessing preprocessing = source->preprocessing();
  preprocessing.mean = {0.1, 0.2, 0.3};
  source->set_preprocessing(preprocessing);
  source->set_class_names(std::vector<std::string>(10, "old"));
  save_weights(*source, folder / "ten");

  const auto model = network(3, 2), untouched = network(3, 2);
  const LoadedWeights first = load_first_weights(*model, folder / "ten");
  EXPECT_TRUE(first.preprocessing);
  EXPECT_EQ(first.not_taken, (std::vector<std::string>{"fc.weight [10, 64]", "fc.bias [10]"}));
  EXPECT_EQ(model->preprocessing(), preprocessing);
  EXPECT_TRUE(model->class_names().empty());
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const Parameter& parameter = model->parameters()[i];
    const Model& origin = parameter.in_head() ? *untouched : *source;
    EXPECT_TRUE(parameter.value.equal(origin.parameters()[i].value)) << parameter.name;
  }
  // Whoever wants to use the weights as they are is still told that they do not fit.
  EXPECT_TRUE(
      contains(refusal([&](const auto& file) { load_weights(*model, file); }, folder / "ten"),
               "fc.weight is Float [10, 64] and should be Float [3, 64]"));
}

TEST(FirstWeights, TakeTheHeadToo) {
  const ScratchFolder folder;
  const auto source = network(3, 1), model = network(3, 2);
  source->set_class_names({"a", "b", "c"});
  save_weights(*source, folder / "three");
  EXPECT_TRUE(load_first_weights(*model, folder / "three").not_taken.empty());
  EXPECT_EQ(weight_hash(*model), weight_hash(*source));
  EXPECT_EQ(model->class_names().size(), 3U);
}

TEST(FirstWeights, RefuseAnotherNetwork) {
  const ScratchFolder folder;
  save_weights(*make_model(Spec::parse("wide_resnet:depth=10,width=2,classes=10")), folder / "x");
  const auto model = network(3, 2);
  const std::string message =
      refusal([&](const auto& file) { load_first_weights(*model, file); }, folder / "x");
  EXPECT_TRUE(contains(message, "do not fit wide_resnet:depth=10,width=1")) << message;
  // Its head sees twice as many features: that is no head for another number of classes.
  EXPECT_TRUE(contains(message, "of another shape")) << message;
}

TEST(FirstWeights, OfAnotherHeadNameTheNetworkThatFits) {
  const ScratchFolder folder;
  save_weights(*network(10, 1), folder / "ten");
  const auto model = network(3, 2);
  const std::string message =
      refusal([&](const auto& file) { load_weights(*model, file); }, folder / "ten");
  EXPECT_TRUE(contains(message,
                       "only the head differs: they would fit wide_resnet:depth=10,width=1,"
                       "classes=10"))
      << message;
}

TEST(InputNorm, BecomesPreprocessing) {
  const ScratchFolder folder;
  for (const bool flat : {false, true}) {
    const auto source = network(3, 1), model = network(3, 2);
    auto tensors = tensors_of(*source);
    const at::Tensor mean = at::tensor({0.5f, 0.25f, 0.125f});
    const at::Tensor std = at::tensor({0.5f, 1.0f, 2.0f});
    tensors.push_back({"mu", flat ? mean : mean.view({1, 3, 1, 1})});
    tensors.push_back({"sigma", flat ? std : std.view({1, 3, 1, 1})});
    write_safetensors(folder / "x", tensors, {});
    Preprocessing expected = model->preprocessing();
    expected.mean = {0.5, 0.25, 0.125};
    expected.std = {0.5, 1, 2};
    EXPECT_TRUE(load_weights(*model, folder / "x").preprocessing);
    EXPECT_EQ(model->preprocessing(), expected);
    EXPECT_EQ(weight_hash(*model), weight_hash(*source));
  }
}

TEST(InputNorm, IsRefusedWhenItIsNone) {
  const ScratchFolder folder;
  const auto model = network(3, 2);
  const auto message = [&](const at::Tensor& mean, const at::Tensor& std) {
    auto tensors = tensors_of(*model);
    if (mean.defined()) tensors.push_back({"mu", mean});
    if (std.defined()) tensors.push_back({"sigma", std});
    write_safetensors(folder / "x", tensors, {});
    return refusal([&](const auto& file) { load_weights(*model, file); }, folder / "x");
  };
  const at::Tensor ones = at::ones({3});
  EXPECT_TRUE(contains(message(ones, {}), "1 unexpected: mu"));
  EXPECT_TRUE(contains(message(ones, at::ones({4})), "2 unexpected: mu, sigma"));
  EXPECT_TRUE(contains(message(ones, at::zeros({3})), "mu and sigma"));
  EXPECT_TRUE(contains(message(ones, at::zeros({3})), "\"std\" must be above 0"));
}

}  // namespace
}  // namespace gala
