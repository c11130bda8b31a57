// Networks that torch.export.save wrote, against PyTorch: logits, gradients of all parameters, and 30 steps
// of GALA. tools/make_exported_fixtures.py makes the files and the numbers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "gala/adapt/adapter.h"
#include "gala/base/error.h"
#include "gala/model/partition.h"
#include "gala/model/weights.h"
#include "tests/model/relative_error.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(GALA_TEST_BUILD_DIR) / "fixtures" / "exported";

std::unique_ptr<Model> open(const fs::path& file) {
  return make_model(Spec("exported", {{"path", file.string()}}));
}

at::Tensor entropy(const at::Tensor& logits) {
  const at::Tensor log_p = at::log_softmax(logits, 1);
  return -(log_p.exp() * log_p).sum(1).mean();
}

void ask_for_gradients(Model& model) {
  for (Parameter& parameter : model.parameters()) {
    parameter.value = parameter.value.detach().requires_grad_();
  }
}

const Parameter& parameter_of(const Model& model, const std::string& name) {
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.name == name) return parameter;
  }
  throw Error("no parameter " + name);
}

class Exported : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kFolder / "cases.json")) {
      GTEST_SKIP() << "the files are made by a Python with torch, and there is none";
    }
  }

  static std::unique_ptr<Model> network(const std::string& name) {
    return open(kFolder / name / "net.pt2");
  }
};

class ExportedFamily : public Exported, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    Exported::SetUp();
    if (IsSkipped()) return;
    for (NamedTensor& item : read_weights(kFolder / GetParam() / "values.pt").tensors) {
      values_[item.name] = item.tensor;
    }
  }

  /// The worst error over all parameters, each of which has a gradient.
  double gradient_error(const Model& model, const std::string& mode) {
    double worst = 0;
    std::size_t vanishing = 0;
    for (const Parameter& parameter : model.parameters()) {
      const at::Tensor& expected = values_.at(mode + ".gradient." + parameter.name);
      EXPECT_TRUE(parameter.value.grad().defined()) << parameter.name;
      if (!parameter.value.grad().defined()) return 1;
      // Some are zero but for rounding, as those of a bias before a norm.
      if (expected.abs().max().item<double>() < 1e-5) {
        EXPECT_LT(parameter.value.grad().abs().max().item<double>(), 1e-4) << parameter.name;
        ++vanishing;
        continue;
      }
      const double error = relative_error(parameter.value.grad(), expected);
      EXPECT_LT(error, 1e-3) << parameter.name;
      worst = std::max(worst, error);
    }
    EXPECT_LE(vanishing, model.parameters().size() / 10);
    return worst;
  }

  std::map<std::string, at::Tensor> values_;
};

TEST_P(ExportedFamily, AnswersAndLearnsAsPyTorch) {
  for (const std::string mode : {"source", "batch"}) {
    const auto model = network(GetParam());
    model->set_norm_mode(NormMode::parse(mode));
    ask_for_gradients(*model);
    const at::Tensor images = values_.at("images"), before = images.clone();
    const Output output = model->forward(images);
    EXPECT_TRUE(images.equal(before));
    EXPECT_LT(relative_error(output.logits, values_.at(mode + ".logits")), 2e-6) << mode;
    EXPECT_EQ(output.features.dim(), 2);
    entropy(output.logits).backward();
    const double error = gradient_error(*model, mode);
    EXPECT_LT(error, 2e-5) << mode;
    RecordProperty(mode + "_gradient_error", fmt::format("{:.2g}", error));
  }
}

TEST_P(ExportedFamily, AnswersTheSameInAnotherLayout) {
  const auto model = network(GetParam());
  model->set_memory_format(at::MemoryFormat::ChannelsLast);
  ask_for_gradients(*model);
  const Output output = model->forward(values_.at("images"));
  EXPECT_LT(relative_error(output.logits, values_.at("source.logits")), 1e-5);
  entropy(output.logits).backward();
  EXPECT_LT(gradient_error(*model, "source"), 1e-4);
}

TEST_P(ExportedFamily, AnswersNearlyTheSameInBf16) {
  const auto model = network(GetParam());
  model->set_precision(Precision::kBf16);
  ask_for_gradients(*model);
  const Output output = model->forward(values_.at("images"));
  EXPECT_EQ(output.logits.scalar_type(), at::kFloat);
  EXPECT_EQ(output.features.scalar_type(), at::kFloat);
  const double error = relative_error(output.logits, values_.at("source.logits"));
  EXPECT_LT(error, 0.1);
  EXPECT_GT(error, 1e-6);  // else it was not bfloat16
  entropy(output.logits).backward();
  EXPECT_TRUE(model->parameters().front().value.grad().defined());
}

TEST_P(ExportedFamily, CountsOnlyTheImagesThatCount) {
  for (const std::string mode : {"batch", "source"}) {
    const auto model = network(GetParam());
    model->set_norm_mode(NormMode::parse(mode));
    const at::Tensor images = values_.at("images");
    const Output whole = model->forward(images.narrow(0, 0, 4));
    const Output part = model->forward_counted(images, at::full({}, 4, at::kLong));
    ASSERT_GT(part.logits.size(0), 4);
    EXPECT_LT(relative_error(part.logits.narrow(0, 0, 4), whole.logits), 1e-5) << mode;
    const Output again = model->forward_again(whole, images.narrow(0, 0, 4), 0);
    EXPECT_TRUE(again.logits.equal(whole.logits));
  }
}

/// Choices are compared where the gap decides; an early end would show in `compared`.
TEST_P(ExportedFamily, TakesThirtyStepsOfGalaAsPyTorch) {
  nlohmann::json rows;
  std::ifstream(kFolder / GetParam() / "steps.json") >> rows;
  const auto model = network(GetParam());
  Adapter adapter(*model, {.loss = "entropy",
                           .select = "gala:opening_scale=1,window=10",
                           .optimizer = "sgd:rate=0.02",
                           .norm = "batch",
                           .partition = Granularity::kModule,
                           .head = HeadRule::kAdapt,
                           .guard = "off"});
  int compared = 0;
  bool parted = false;
  for (std::size_t step = 0; step < rows.size() && !parted; ++step) {
    const auto& row = rows[step];
    const Answer answer = adapter.answer(values_.at(fmt::format("step{}.images", step)));
    const StepRecord& record = answer.steps.at(0);
    EXPECT_NEAR(record.loss, row.at("loss").get<double>(), 1e-4) << "step " << step;
    if (row.at("opening").get<bool>()) continue;
    std::vector<std::string> chosen, expected;
    for (const std::size_t layer : record.selected()) {
      chosen.push_back(adapter.layers().layers[layer].name);
    }
    if (!row.at("chosen").is_null()) expected.push_back(row.at("chosen"));
    parted = chosen != expected;
    if (parted) {
      // Two correct programs may part where nothing but rounding decides.
      EXPECT_LT(std::min(row.at("gap").get<double>(), row.at("margin").get<double>()), 1e-5)
          << "step " << step;
    }
    ++compared;
  }
  EXPECT_GE(compared, 20);
  RecordProperty("compared", compared);
  if (parted) return;
  for (const Parameter& parameter : model->parameters()) {
    EXPECT_LT(relative_error(parameter.value, values_.at("after." + parameter.name)), 1e-3)
        << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ExportedFamily,
                         testing::Values("resnet", "mobilenet", "efficientnet", "convnext", "vit",
                                         "swin", "group_resnet", "odd", "shortcuts"),
                         [](const auto& family) { return family.param; });

/// torchvision's and timm's own networks, where GALA_TEST_PACKAGES asks for them.
class ExportedPackage : public Exported, public testing::WithParamInterface<std::string> {};

TEST_P(ExportedPackage, AnswersAndLearnsAsPyTorch) {
  const fs::path folder = kFolder / "packages" / GetParam();
  if (!fs::exists(folder)) {
    GTEST_SKIP() << "GALA_TEST_PACKAGES is not set, or the package is not installed";
  }
  std::map<std::string, at::Tensor> values;
  for (NamedTensor& item : read_weights(folder / "values.pt").tensors)
    values[item.name] = item.tensor;
  const auto model = open(folder / "net.pt2");
  ask_for_gradients(*model);
  const Output output = model->forward(values.at("images"));
  EXPECT_LT(relative_error(output.logits, values.at("logits")), 1e-5);
  (output.logits * values.at("direction")).sum().backward();
  double worst = 0;
  for (const Parameter& parameter : model->parameters()) {
    const at::Tensor flat = parameter.value.grad().flatten();
    const at::Tensor &some = values.at("gradient." + parameter.name),
                     &norm = values.at("norm." + parameter.name);
    ASSERT_GT(norm.item<double>(), 0) << parameter.name;
    const auto step = std::max<std::int64_t>(1, flat.numel() / 64);
    worst = std::max({worst, relative_error(flat.norm().reshape(1), norm),
                      (flat.slice(0, 0, std::nullopt, step) - some).norm().item<double>() /
                          norm.item<double>()});
  }
  EXPECT_GT(values.at("logits").norm().item<double>(), 0.1);
  EXPECT_LT(worst, 5e-3);  // a few relus near zero change sides
  RecordProperty("gradient_error", fmt::format("{:.2g}", worst));
  std::cout << fmt::format("{}: logits {:.1e}, gradients {:.1e}\n", GetParam(),
                           relative_error(output.logits, values.at("logits")), worst);
}

INSTANTIATE_TEST_SUITE_P(Networks, ExportedPackage,
                         testing::Values("torchvision_resnet50", "torchvision_mobilenet_v3_large",
                                         "torchvision_convnext_tiny", "torchvision_vit_b_16",
                                         "timm_resnet50", "timm_mobilenetv3_large_100",
                                         "timm_convnext_tiny", "timm_vit_base_patch16_224"),
                         [](const auto& network) { return network.param; });

std::vector<std::int64_t> block_sizes(const Model& model) {
  std::vector<std::int64_t> tensors;
  for (const Parameter& parameter : model.parameters()) {
    const auto block = static_cast<std::size_t>(parameter.block);
    if (tensors.size() <= block) tensors.resize(block + 1);
    ++tensors[block];
  }
  return tensors;
}

TEST_F(Exported, FindsTheBlocksOfEachFamily) {
  // Tensors in the head, then in each block. A residual block has 6, or 9 where it changes the shape.
  EXPECT_EQ(block_sizes(*network("resnet")), (std::vector<std::int64_t>{2, 3 + 12, 9 + 6, 9}));
  // What is behind the last block joins it: the first layer of the classifier, a last norm.
  EXPECT_EQ(block_sizes(*network("mobilenet")),
            (std::vector<std::int64_t>{2, 3, 13, 13, 13, 3 + 2}));
  EXPECT_EQ(block_sizes(*network("convnext")), (std::vector<std::int64_t>{2, 4 + 18, 4 + 9 + 2}));
  EXPECT_EQ(block_sizes(*network("vit")), (std::vector<std::int64_t>{2, 4 + 12, 12, 12 + 2}));
  EXPECT_EQ(network("odd")->parameters().back().name, "fc.bias");
}

TEST_F(Exported, KnowsWhatAParameterIs) {
  const auto swin = network("swin"), convnext = network("convnext"), vit = network("vit"),
             group = network("group_resnet");
  EXPECT_EQ(parameter_of(*group, "layer1.0.bn1.weight").kind, ModuleKind::kNorm);
  EXPECT_EQ(parameter_of(*group, "conv1.weight").kind, ModuleKind::kConvolution);
  EXPECT_EQ(parameter_of(*vit, "blocks.1.norm1.bias").kind, ModuleKind::kNorm);
  EXPECT_EQ(parameter_of(*vit, "blocks.1.qkv.bias").kind, ModuleKind::kLinear);
  EXPECT_EQ(parameter_of(*vit, "patch_embed.bias").kind, ModuleKind::kConvolution);
  EXPECT_EQ(parameter_of(*vit, "cls_token").kind, ModuleKind::kOther);
  EXPECT_EQ(parameter_of(*vit, "cls_token").module, "cls_token");
  EXPECT_EQ(parameter_of(*convnext, "stages.0.0.gamma").kind, ModuleKind::kOther);
  EXPECT_EQ(parameter_of(*swin, "layers.0.1.relative_position_bias_table").kind,
            ModuleKind::kOther);
  EXPECT_EQ(parameter_of(*network("odd"), "mha.in_proj_weight").kind, ModuleKind::kLinear);
  EXPECT_TRUE(parameter_of(*vit, "head.weight").in_head());
  // A method that moves norm layers alone finds them where there is no batch normalisation.
  const auto norms = adapted_parameters(*vit, {.others = false}, Granularity::kModule);
  EXPECT_EQ(norms.size(), 14u);
}

TEST_F(Exported, KeepsRunningStatisticsAsBuffersAndNothingElse) {
  EXPECT_EQ(network("resnet")->buffers().size(), 2u * 13);
  EXPECT_TRUE(network("swin")->buffers().empty());
  const auto odd = network("odd");
  EXPECT_EQ(odd->buffers().size(), 4u);
  EXPECT_TRUE(odd->is_passive("unused.weight"));
  EXPECT_TRUE(odd->is_passive("row_norm.num_batches_tracked"));
  EXPECT_FALSE(odd->is_passive("fc.weight"));
}

TEST_F(Exported, MovesRunningStatisticsWhenToldTo) {
  const auto model = network("resnet");
  model->set_norm_mode(NormMode::parse("running:momentum=0.5"));
  const at::Tensor images = at::randn({4, 3, 32, 32}), before = model->buffers()[0].value.clone();
  model->forward(images, /*update_statistics=*/false);
  EXPECT_TRUE(model->buffers()[0].value.equal(before));
  model->forward(images);
  const at::Tensor batch =
      at::conv2d(images, model->parameters()[0].value, {}, 1, 1).mean({0, 2, 3});
  EXPECT_LT(relative_error(model->buffers()[0].value, 0.5 * before + 0.5 * batch), 1e-5);
}

/// A blend of one kind of statistics alone is that kind, and running ones that do not run are the source's;
/// gradients, too, in networks that write over what their norms give.
TEST_F(Exported, NormModesMeetAtTheirEnds) {
  const auto learn = [](const std::string& name, const std::string& mode) {
    const auto model = network(name);
    model->set_norm_mode(NormMode::parse(mode));
    ask_for_gradients(*model);
    at::Tensor images = at::linspace(-2, 2, 4 * 3 * 32 * 32).view({4, 3, 32, 32}).sin();
    const Output output = model->forward(images);
    entropy(output.logits).backward();
    std::vector<at::Tensor> results = {output.logits.detach()};
    for (const Parameter& parameter : model->parameters()) {
      results.push_back(parameter.value.grad().flatten());
    }
    return at::cat({results[0].flatten(), at::cat(at::TensorList(results).slice(1))});
  };
  for (const std::string name : {"resnet", "mobilenet", "odd"}) {
    const at::Tensor source = learn(name, "source"), batch = learn(name, "batch");
    EXPECT_GT(relative_error(source, batch), 0.01);
    EXPECT_LT(relative_error(learn(name, "blend:weight=0"), source), 1e-4) << name;
    EXPECT_LT(relative_error(learn(name, "blend:weight=1"), batch), 1e-4) << name;
    EXPECT_LT(relative_error(learn(name, "running:momentum=0"), source), 1e-5) << name;
  }
}

TEST_F(Exported, TakesPreprocessingAndClassesFromTheFile) {
  const auto model = network("vit");
  EXPECT_EQ(model->preprocessing().size, 32);
  EXPECT_EQ(model->preprocessing().std[0], 0.25);
  EXPECT_EQ(model->preprocessing().interpolation, "bicubic");
  EXPECT_EQ(model->classes(), 7);
  EXPECT_EQ(model->class_names().at(6), "class 6");
  EXPECT_TRUE(model->notes().empty());
  const auto bare = open(kFolder / "bad" / "at_most_four.pt2");
  EXPECT_EQ(bare->preprocessing().size, 32);
  ASSERT_EQ(bare->notes().size(), 1u);
  EXPECT_NE(bare->notes()[0].find("does not say how its images are prepared"), std::string::npos);
}

TEST_F(Exported, SavedWeightsAreReadBack) {
  const fs::path path = fs::path(testing::TempDir()) / "gala_exported.safetensors";
  const auto model = network("odd");
  const std::string hash = weight_hash(*model);
  for (Parameter& parameter : model->parameters()) parameter.value = parameter.value * 1.5;
  save_weights(*model, path);
  const Spec spec = read_weight_metadata(path).at("model").get<std::string>();
  const auto again = make_model(spec);
  EXPECT_EQ(weight_hash(*again), hash);
  load_weights(*again, path);
  EXPECT_EQ(weight_hash(*again), weight_hash(*model));
  fs::remove(path);
}

void expect_refused(const std::function<void()>& action, const std::string& words) {
  try {
    action();
    ADD_FAILURE() << "was not refused: " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST_F(Exported, RefusesWhatCannotAdapt) {
  const auto refuses = [&](const std::string& file, const std::string& words) {
    expect_refused([&] { open(kFolder / "bad" / (file + ".pt2")); }, words);
  };
  refuses("fixed_batch", "the batch size is fixed at 2: export it with any batch size");
  refuses("decomposed", "taken apart by run_decompositions");
  refuses("decomposed_vit", "taken apart by run_decompositions");
  refuses("training", "model.eval()");
  refuses("dropout", "dropout is at work: call model.eval()");
  refuses("half", "\"fc.weight\" is Half, and float32 is needed");
  refuses("no_linear", "has no linear layer");
  refuses("checkpoint", "is a PyTorch checkpoint");
  refuses("nowhere", "nowhere.pt2");
}

TEST_F(Exported, RefusesImagesThatTheExportDoesNotTake) {
  const auto model = open(kFolder / "bad" / "at_most_four.pt2");
  model->forward(at::zeros({4, 3, 32, 32}));
  expect_refused([&] { model->forward(at::zeros({5, 3, 32, 32})); }, "at most 4 images");
  expect_refused(
      [&] {
        model->forward(at::zeros({2, 3, 48, 32}));
      },
      "was exported for images of 32 x 32, and these have 48 x 32");
  const std::string path = (kFolder / "vit" / "net.pt2").string();
  expect_refused(
      [&] {
        make_model(Spec("exported", {{"path", path}, {"classes", "10"}}));
      },
      "has 7 classes, not 10");
  expect_refused([] { make_model("exported"); }, "path must name a .pt2 file");
}

}  // namespace
}  // namespace gala
