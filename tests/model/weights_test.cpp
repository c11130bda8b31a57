#include "gala/model/weights.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "gala/model/safetensors.h"
#include "weight_files.h"

namespace gala {
namespace {

using namespace gala::testing;
using nlohmann::json;

/// The tensors of the small network that Python saves: convolution, norm, linear.
class SmallModel : public Model {
 public:
  SmallModel() : Model(Spec{"small", {}}, 2, Preprocessing::imagenet()) {
    add("0.weight", {4, 3, 3, 3}), add("0.bias", {4}), add("1.weight", {4}), add("1.bias", {4});
    add("3.weight", {2, 4}), add("3.bias", {2});
    buffers_.push_back({"1.running_mean", at::full({4}, 0.25)});
    buffers_.push_back({"1.running_var", at::full({4}, 0.75)});
  }
  Output forward(const at::Tensor&, bool) override { return {}; }
  Output forward_counted(const at::Tensor&, const at::Tensor&) override { return {}; }

 private:
  void add(const std::string& name, const std::vector<std::int64_t>& sizes) {
    parameters_.push_back({name, name.substr(0, 1), ModuleKind::kConvolution, 1,
                           at::full(sizes, 0.5).set_requires_grad(true)});
  }
};

std::vector<NamedTensor> tensors_of(const Model& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.parameters()) tensors.push_back({item.name, item.value.detach()});
  for (const auto& item : model.buffers()) tensors.push_back({item.name, item.value});
  return tensors;
}

/// Other values for a SmallModel, for tests to spoil.
std::vector<NamedTensor> good_tensors() {
  auto tensors = tensors_of(SmallModel());
  for (auto& item : tensors) item.tensor = item.tensor * 2 + 1;
  return tensors;
}

std::string load_refusal(Model& model, const std::filesystem::path& path) {
  return refusal([&](const auto& file) { load_weights(model, file); }, path);
}

TEST(Weights, TellsFormatsApartByContent) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  const ScratchFolder folder;
  for (const char* name : {"plain.pt", "types.safetensors"}) {
    // The name says nothing.
    std::filesystem::copy_file(fixture_folder() / name, folder / (std::string(name) + ".bin"));
    expect_as_python_wrote(read_weights(folder / (std::string(name) + ".bin")).tensors, name);
  }
  EXPECT_EQ(read_weights(fixture_folder() / "types.safetensors").metadata,
            json::parse(R"({"classes": ["a"]})"));
  EXPECT_EQ(read_weights(fixture_folder() / "plain.pt").metadata, json::object());
  EXPECT_TRUE(contains(refusal(read_weights, fixture_folder() / "legacy.pt"), "bare pickle"));
}

TEST(Weights, TakesNoHeaderLengthForAPickle) {
  // 640 and 128 begin with 0x80, as pickles do.
  const ScratchFolder folder;
  for (const std::size_t length : {128, 640}) {
    std::string header = "{\"__metadata__\":{\"gala\":\"{}\"}}";
    header.resize(length, ' ');
    write_file(folder / "x", safetensors_bytes(header, ""));
    EXPECT_TRUE(read_weights(folder / "x").tensors.empty());
  }
}

TEST(Weights, SaysWhatAFailedDownloadIs) {
  const ScratchFolder folder;
  const auto message = [&](std::string_view content) {
    write_file(folder / "x", content);
    return refusal(read_weights, folder / "x");
  };
  EXPECT_TRUE(contains(message(""), "is empty"));
  EXPECT_TRUE(contains(message("version https:"
                               "//git-lfs.github.com/spec/v1\noid sha256:12\n"),
                       "Git LFS pointer"));
  EXPECT_TRUE(contains(message("<!DOCTYPE html><html>"), "web page"));
  EXPECT_TRUE(contains(message("\xef\xbb\xbf\r\n <HTML lang=en>"), "web page"));
  EXPECT_TRUE(contains(message("404: Not Found\nmore"), "is text (\"404: Not Found\")"));
  EXPECT_TRUE(contains(message(std::string(100, '\1')), "neither safetensors nor"));
  EXPECT_TRUE(contains(refusal(read_weights, folder / "none"), "No such file"));
  EXPECT_TRUE(contains(refusal(read_weights, folder.path()), "is a folder"));
}

TEST(Weights, LoadsAPytorchCheckpoint) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  SmallModel model;
  const void* memory = model.parameters()[0].value.data_ptr();
  EXPECT_FALSE(load_weights(model, fixture_folder() / "plain.pt").preprocessing);
  EXPECT_EQ(model.parameters()[0].value.data_ptr(), memory);
  EXPECT_TRUE(model.parameters()[0].value.requires_grad());
  EXPECT_EQ(model.preprocessing(), Preprocessing::imagenet());
  std::ifstream in(fixture_folder() / "expected.json");
  std::size_t compared = 0;
  const auto expected = json::parse(in).at("plain.pt");
  for (const auto& item : expected) {
    for (const auto& own : tensors_of(model)) {
      if (own.name != item.at("name").get<std::string>()) continue;
      const auto values = item.at("values").get<std::vector<double>>();
      EXPECT_TRUE(at::equal(own.tensor.flatten().to(at::kDouble), at::tensor(values))) << own.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 8u);
}

TEST(Weights, HashIsTheOnePythonComputes) {
  GALA_REQUIRE_WEIGHT_FIXTURES();
  SmallModel model;
  load_weights(model, fixture_folder() / "plain.pt");
  EXPECT_EQ(weight_hash(model), read_file(fixture_folder() / "plain.sha256"));
}

TEST(Weights, HashDependsOnValuesNamesAndShapesAlone) {
  const SmallModel same;
  const std::string hash = weight_hash(same);
  SmallModel model;
  model.parameters()[0].value =
      model.parameters()[0].value.detach().contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(weight_hash(model), hash);
  model.buffers()[0].value[3] = 0.5;
  EXPECT_NE(weight_hash(model), hash);
  model.buffers()[0].value[3] = 0.25;
  EXPECT_EQ(weight_hash(model), hash);
  model.buffers()[0].name = "other";
  EXPECT_NE(weight_hash(model), hash);
  SmallModel reshaped;
  reshaped.parameters()[4].value = reshaped.parameters()[4].value.detach().view({4, 2});
  EXPECT_NE(weight_hash(reshaped), hash);
}

TEST(Weights, SurviveSavingAndLoading) {
  const ScratchFolder folder;
  SmallModel model;
  for (auto& parameter : model.parameters()) parameter.value = at::randn(parameter.value.sizes());
  Preprocessing preprocessing;
  preprocessing.size = 32;
  preprocessing.mean = {0.1, 0.2, 0.3};
  model.set_preprocessing(preprocessing);
  model.set_class_names({"Katze", "Hündin"});
  save_weights(model, folder / "x.safetensors");
  SmallModel other;
  EXPECT_TRUE(load_weights(other, folder / "x.safetensors").preprocessing);
  EXPECT_EQ(weight_hash(other), weight_hash(model));
  EXPECT_EQ(other.preprocessing(), preprocessing);
  EXPECT_EQ(other.class_names(), model.class_names());
  save_weights(other, folder / "y.safetensors");
  EXPECT_EQ(read_file(folder / "x.safetensors"), read_file(folder / "y.safetensors"));
  const auto content = read_safetensors(folder / "x.safetensors");
  EXPECT_EQ(json::parse(content.metadata.at("gala")),
            json({{"model", "small"},
                  {"classes", {"Katze", "Hündin"}},
                  {"preprocessing", preprocessing.to_json()}}));
  EXPECT_EQ(content.tensors.size(), 8u);
}

TEST(Weights, AreNotSavedUnlessTheyAreFinite) {
  const ScratchFolder folder;
  SmallModel model;
  for (auto& parameter : model.parameters()) parameter.value = at::randn(parameter.value.sizes());
  EXPECT_EQ(first_not_finite(model), "");
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF}) {
    Parameter& parameter = model.parameters()[1];
    parameter.value.view(-1)[0] = bad;
    EXPECT_EQ(first_not_finite(model), parameter.name);
    EXPECT_THROW(save_weights(model, folder / "x.safetensors"), Error);
    EXPECT_FALSE(std::filesystem::exists(folder / "x.safetensors"));
  }
}

TEST(Weights, BecomeFloat32) {
  const ScratchFolder folder;
  for (const auto type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    auto tensors = good_tensors();
    for (auto& item : tensors) item.tensor = item.tensor.to(type);
    write_safetensors(folder / "x", tensors, {});
    SmallModel model;
    load_weights(model, folder / "x");
    EXPECT_EQ(model.parameters()[0].value.scalar_type(), at::kFloat);
    EXPECT_EQ(model.parameters()[0].value.sum().item<double>(), 2.0 * 4 * 3 * 3 * 3);
    EXPECT_EQ(model.buffers()[1].value.sum().item<double>(), 2.5 * 4);
  }
}

TEST(Weights, ListEverythingThatDoesNotFit) {
  const ScratchFolder folder;
  auto tensors = good_tensors();
  tensors.erase(tensors.begin());
  tensors[3].tensor = at::ones({3, 4});
  tensors[4].tensor = at::ones({2}, at::kLong);
  for (int i = 0; i < 12; ++i) tensors.push_back({fmt::format("extra{}", i), at::ones({1})});
  tensors.push_back({"1.num_batches_tracked", at::ones({}, at::kLong)});
  write_safetensors(folder / "x", tensors, {{"gala", R"({"model": "tiny:depth=3"})"}});
  SmallModel model;
  const std::string message = load_refusal(model, folder / "x");
  for (const char* part :
       {"do not fit small (they are of tiny:depth=3): ", "1 missing: 0.weight; ",
        "12 unexpected: extra0, extra1, extra2, and 9 more; ",
        "2 of another shape or type: 3.weight is Float [3, 4] and should be Float [2, 4], "
        "3.bias is Long [2] and should be Float [2]"}) {
    EXPECT_TRUE(contains(message, part)) << part << "\n" << message;
  }
  EXPECT_FALSE(contains(message, "extra3"));
  EXPECT_FALSE(contains(message, "num_batches_tracked"));
}

std::vector<NamedTensor> behind(const std::string& prefix, std::vector<NamedTensor> tensors) {
  for (auto& item : tensors) item.name = prefix + item.name;
  return tensors;
}

TEST(Weights, LoseThePrefixOfAWrapper) {
  const ScratchFolder folder;
  SmallModel expected;
  write_safetensors(folder / "plain", good_tensors(), {});
  EXPECT_EQ(load_weights(expected, folder / "plain").prefix, "");
  for (const char* prefix : {"model.", "module.", "backbone.", "net.", "model.encoder."}) {
    auto tensors = behind(prefix, good_tensors());
    tensors.push_back({std::string(prefix) + "1.num_batches_tracked", at::ones({}, at::kLong)});
    tensors.push_back({std::string(prefix) + "mu", at::full({3}, 0.25)});
    tensors.push_back({std::string(prefix) + "sigma", at::full({3}, 0.5)});
    write_safetensors(folder / "x", tensors, {});
    SmallModel model;
    const LoadedWeights loaded = load_weights(model, folder / "x");
    EXPECT_EQ(loaded.prefix, prefix);
    EXPECT_TRUE(loaded.preprocessing);
    EXPECT_EQ(model.preprocessing().mean[0], 0.25);
    EXPECT_EQ(weight_hash(model), weight_hash(expected));
  }
}

TEST(Weights, SayWhyTheirNamesDoNotFit) {
  const ScratchFolder folder;
  SmallModel model;
  const auto said = [&](const std::vector<NamedTensor>& tensors) {
    write_safetensors(folder / "x", tensors, {});
    return load_refusal(model, folder / "x");
  };
  auto two = behind("model.", good_tensors());
  for (auto& item : behind("ema.", good_tensors())) two.push_back(item);
  EXPECT_TRUE(contains(said(two), "every name is there behind \"ema.\" and behind \"model.\""))
      << said(two);
  EXPECT_LT(said(two).size(), 500u);
  const std::string other = said({{"features.0.weight", at::ones({4})}});
  EXPECT_TRUE(contains(other, "8 missing: 0.weight, 0.bias, 1.weight, and 5 more")) << other;
  EXPECT_TRUE(contains(other, "no name is one of small's: is it another network?")) << other;
  // A prefix is no reason to leave out a name that fits nowhere.
  auto more = behind("model.", good_tensors());
  more.push_back({"criterion.weight", at::ones({2})});
  EXPECT_TRUE(contains(said(more), "1 unexpected: criterion.weight")) << said(more);
}

TEST(Weights, AFailedLoadChangesNothing) {
  const ScratchFolder folder;
  SmallModel model;
  model.set_class_names({"one", "two"});
  const std::string before = weight_hash(model);
  const auto refused = [&](const std::vector<NamedTensor>& tensors, const std::string& metadata,
                           const std::string& part) {
    write_safetensors(folder / "x", tensors, {{"gala", metadata}});
    const std::string message = load_refusal(model, folder / "x");
    EXPECT_TRUE(contains(message, part)) << part << "\n" << message;
    EXPECT_EQ(weight_hash(model), before) << part;
    EXPECT_EQ(model.preprocessing(), Preprocessing::imagenet());
    EXPECT_EQ(model.class_names(), (std::vector<std::string>{"one", "two"}));
  };
  auto spoiled = good_tensors();
  spoiled.back().tensor = at::ones({5});
  refused(spoiled, "{}", "1.running_var is Float [5]");
  spoiled = good_tensors();
  spoiled.pop_back();
  refused(spoiled, "{}", "1 missing: 1.running_var");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {nan, std::numeric_limits<double>::infinity(), 1e300}) {
    spoiled = good_tensors();
    spoiled.back().tensor = spoiled.back().tensor.to(at::kDouble).clone();
    spoiled.back().tensor[2] = bad;
    refused(spoiled, "{}", "tensor \"1.running_var\" holds values that are not finite");
  }
  const auto good = good_tensors();
  refused(good, "{", "\"gala\" is not JSON");
  refused(good, "[]", "\"gala\" is not a JSON object");
  refused(good, "{\"a\":" + std::string(100'000, '['), "nested too deeply");
  refused(good, R"({"classes": ["a"]})", "names 1 classes, but small has 2");
  refused(good, R"({"classes": ["a", 2]})", "not a list of texts");
  refused(good, R"({"classes": "ab"})", "not a list of texts");
  refused(good, R"({"preprocessing": {}})", "preprocessing: \"mean\" is missing");
  refused(good, R"({"preprocessing": 3})", "must be a JSON object");

  write_safetensors(folder / "x", good, {});
  EXPECT_FALSE(load_weights(model, folder / "x").preprocessing);
  EXPECT_NE(weight_hash(model), before);
}

TEST(Weights, FitTheNetworksOfTheZoo) {
  const ScratchFolder folder;
  const auto model = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=5"), 1);
  const auto other = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=5"), 2);
  ASSERT_NE(weight_hash(*model), weight_hash(*other));
  save_weights(*model, folder / "x");
  EXPECT_TRUE(load_weights(*other, folder / "x").preprocessing);
  EXPECT_EQ(weight_hash(*model), weight_hash(*other));
  const auto more_classes = make_model(Spec::parse("wide_resnet:depth=10,width=1,classes=6"), 2);
  EXPECT_TRUE(contains(load_refusal(*more_classes, folder / "x"),
                       "fc.weight is Float [5, 64] and should be Float [6, 64]"));
}

}  // namespace
}  // namespace gala
