// Every network against one written with torch.nn: logits, features, gradients of all parameters
// and running statistics afterwards. tools/make_model_fixtures.py makes the numbers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gala/model/model.h"
#include "tests/model/relative_error.h"

namespace gala {
namespace {

const std::filesystem::path kFolder =
    std::filesystem::path(GALA_TEST_BUILD_DIR) / "fixtures" / "model";

/// The same formula as `pattern` in the script: integers until the very end, so equal to the bit.
at::Tensor fill(const std::vector<std::int64_t>& shape, std::uint32_t seed, double offset,
                double scale) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  float* data = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761u + (seed * 40503u + 12345u);
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    x ^= x >> 16;
    data[i] = static_cast<float>(offset + scale * (static_cast<double>(x >> 8) / 8388608.0 - 1.0));
  }
  return tensor;
}

struct Case {
  nlohmann::json index;
  std::vector<float> data;

  explicit Case(const std::string& name) {
    std::ifstream(kFolder / name / "index.json") >> index;
    std::ifstream file(kFolder / name / "data.bin", std::ios::binary | std::ios::ate);
    data.resize(static_cast<std::size_t>(file.tellg()) / sizeof(float));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(data.data()),
              static_cast<std::streamsize>(data.size() * sizeof(float)));
  }

  at::Tensor tensor(const nlohmann::json& place) const {
    const std::size_t begin = place.at("begin"), count = place.at("count");
    return at::tensor(at::ArrayRef<float>(data.data() + begin, count))
        .view(place.at("shape").get<std::vector<std::int64_t>>());
  }
};

NormMode mode_of(const std::string& text) {
  if (!text.starts_with("training")) return NormMode::parse(text);
  return {.kind = NormKind::kTraining, .momentum = std::stod(text.substr(text.find('=') + 1))};
}

/// Puts the case's values into the slots, by name and order.
template <class Slots>
void fill_slots(Slots& slots, const nlohmann::json& entries, at::ScalarType type) {
  ASSERT_EQ(slots.size(), entries.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& entry = entries[i];
    EXPECT_EQ(slots[i].name, entry.at("name").template get<std::string>());
    const auto shape = entry.at("shape").template get<std::vector<std::int64_t>>();
    ASSERT_EQ(slots[i].value.sizes(), at::IntArrayRef(shape)) << slots[i].name;
    slots[i].value = fill(shape, entry.at("seed"), entry.at("offset"), entry.at("scale")).to(type);
  }
}

class Reference : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFolder / "cases.json")) {
      GTEST_SKIP() << "the numbers are made by a Python with torch, and there is none";
    }
  }
};

void compare_gradients(const Model& model, const Case& expected) {
  double worst = 0;
  std::string where;
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const Parameter& parameter = model.parameters()[i];
    const auto& entry = expected.index.at("parameters")[i];
    ASSERT_TRUE(parameter.value.grad().defined()) << parameter.name;
    const at::Tensor gradient = parameter.value.grad().contiguous().flatten();
    const double norm = entry.at("gradient_norm");
    const double norm_error = std::abs(gradient.to(at::kDouble).norm().item<double>() / norm - 1);
    const std::int64_t step = entry.at("gradient_step");
    const double error =
        std::max(norm_error, relative_error(gradient.slice(0, 0, std::nullopt, step),
                                            expected.tensor(entry.at("gradient"))));
    if (error > worst) {
      worst = error;
      where = parameter.name;
    }
  }
  EXPECT_LT(worst, 1e-6) << where;
  testing::Test::RecordProperty("worst_gradient_error", fmt::format("{:.2g} ({})", worst, where));
}

struct Pass {
  std::unique_ptr<Model> model;
  Output output;
};

Pass run_case(const Case& expected, at::ScalarType type, at::MemoryFormat format) {
  const auto& index = expected.index;
  Pass pass{make_model(Spec::parse(index.at("spec").get<std::string>())), {}};
  pass.model->set_norm_mode(mode_of(index.at("norm")));
  fill_slots(pass.model->parameters(), index.at("parameters"), type);
  fill_slots(pass.model->buffers(), index.at("buffers"), type);
  for (Parameter& parameter : pass.model->parameters()) {
    if (parameter.value.dim() == 4) parameter.value = parameter.value.contiguous(format);
    parameter.value.set_requires_grad(true);
  }
  const auto& images = index.at("images");
  pass.output = pass.model->forward(
      fill(images.at("shape"), images.at("seed"), 0.0, 1.7).to(type).contiguous(format));
  return pass;
}

void compare_output(const Pass& pass, const Case& expected, double tolerance) {
  const auto& index = expected.index;
  EXPECT_LT(relative_error(pass.output.features, expected.tensor(index.at("features"))), tolerance);
  EXPECT_LT(relative_error(pass.output.logits, expected.tensor(index.at("logits"))), tolerance);
  for (std::size_t i = 0; i < pass.model->buffers().size(); ++i) {
    const at::Tensor after = expected.tensor(index.at("buffers")[i].at("after"));
    const Buffer& buffer = pass.model->buffers()[i];
    if (pass.model->norm_mode().keeps_statistics()) {
      EXPECT_LT(relative_error(buffer.value, after), tolerance) << buffer.name;
    } else {
      EXPECT_TRUE(buffer.value.to(at::kFloat).equal(after)) << buffer.name;
    }
  }
}

/// In double precision everything must agree as far as the stored float32 numbers reach.
TEST_P(Reference, AgreesWithPyTorch) {
  const Case expected(GetParam());
  const Pass pass = run_case(expected, at::kDouble, at::MemoryFormat::Contiguous);
  compare_output(pass, expected, 1e-6);
  const Output& output = pass.output;
  const at::Tensor labels =
      at::arange(output.logits.size(0), at::kLong).remainder(output.logits.size(1));
  const at::Tensor loss =
      at::cross_entropy_loss(output.logits, labels) + 0.1 * output.features.square().mean();
  loss.backward();
  compare_gradients(*pass.model, expected);
}

TEST_P(Reference, AgreesWithPyTorchInSinglePrecisionAndChannelsLastOrder) {
  const Case expected(GetParam());
  for (const at::MemoryFormat format :
       {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    compare_output(run_case(expected, at::kFloat, format), expected, 1e-4);
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const char* network :
       {"resnet18", "resnet34", "resnet50", "resnet50_first", "resnet50_odd", "wide_10_1",
        "wide_16_2", "wide_odd", "resnext29", "resnext29_small"}) {
    for (const char* mode : {"source", "batch"})
      names.push_back(fmt::format("{}_{}", network, mode));
  }
  for (const char* network : {"resnet18", "wide_16_2", "resnext29_small"}) {
    for (const char* mode : {"blend", "running", "training"}) {
      names.push_back(fmt::format("{}_{}", network, mode));
    }
  }
  return names;
}

TEST(ReferenceCases, AreAllTested) {
  if (!std::filesystem::exists(kFolder / "cases.json")) {
    GTEST_SKIP() << "the numbers are made by a Python with torch, and there is none";
  }
  nlohmann::json made;
  std::ifstream(kFolder / "cases.json") >> made;
  EXPECT_EQ(made.get<std::vector<std::string>>(), case_names());
}

INSTANTIATE_TEST_SUITE_P(Networks, Reference, testing::ValuesIn(case_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace gala
