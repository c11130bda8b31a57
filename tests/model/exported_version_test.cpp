// A network that another torch exported than the one at hand (tools/make_export_of_version.py), against that torch's own
// logits and gradients.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "gala/model/weights.h"
#include "tests/model/relative_error.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

class ExportedVersion : public testing::TestWithParam<std::string> {};

TEST_P(ExportedVersion, AnswersAndLearnsAsThatPyTorch) {
  const fs::path folder =
      fs::path(GALA_TEST_SOURCE_DIR) / "tests/model/fixtures/exported" / GetParam();
  std::map<std::string, at::Tensor> values;
  for (NamedTensor& item : read_weights(folder / "values.pt").tensors) {
    values[item.name] = item.tensor;
  }
  const auto model = make_model(Spec("exported", {{"path", (folder / "net.pt2").string()}}));
  EXPECT_EQ(model->classes(), 7);
  ASSERT_EQ(model->parameters().size() + 2, values.size());
  for (Parameter& parameter : model->parameters()) {
    parameter.value = parameter.value.detach().requires_grad_();
  }
  const Output output = model->forward(values.at("images"));
  EXPECT_LT(relative_error(output.logits, values.at("logits")), 2e-6);
  const at::Tensor log_p = at::log_softmax(output.logits, 1);
  (-(log_p.exp() * log_p).sum(1).mean()).backward();
  for (const Parameter& parameter : model->parameters()) {
    const at::Tensor& expected = values.at("gradient." + parameter.name);
    EXPECT_LT(relative_error(parameter.value.grad(), expected), 1e-4) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ExportedVersion, testing::Values("torch_2_11"),
                         [](const auto& version) { return version.param; });

}  // namespace
}  // namespace gala
