// Every loss against one written in Python: value and gradient. tools/make_loss_fixtures.py makes
// the numbers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "gala/loss/loss.h"

namespace gala {
namespace {

const std::filesystem::path kCases =
    std::filesystem::path(GALA_TEST_BUILD_DIR) / "fixtures" / "loss" / "cases.json";

at::Tensor matrix(const nlohmann::json& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) {
    tensors.push_back(at::tensor(row.get<std::vector<double>>(), at::kDouble));
  }
  return at::stack(tensors);
}

class LossReference : public testing::Test {
 protected:
  nlohmann::json cases;

  void SetUp() override {
    if (!std::filesystem::exists(kCases)) {
      GTEST_SKIP() << "the numbers are made by a Python with torch, and there is none";
    }
    std::ifstream(kCases) >> cases;
    ASSERT_GT(cases.size(), 40u);
  }

  void expect_agreement(at::ScalarType type, double tolerance) const {
    for (const auto& expected : cases) {
      const std::string spec = expected.at("loss");
      SCOPED_TRACE(spec + " on " + expected.at("batch").get<std::string>());
      const at::Tensor logits = matrix(expected.at("logits")).to(type).requires_grad_();
      const Output output{.features = {}, .logits = logits};
      const LossTerms terms = make_loss(spec)->evaluate({.student = output});
      EXPECT_EQ(terms.value.dim(), 0);
      EXPECT_EQ(terms.confident.dim(), 0);
      EXPECT_EQ(terms.confident.item<double>(), expected.at("confident").get<double>());
      EXPECT_NEAR(terms.value.item<double>(), expected.at("value").get<double>(), tolerance);
      terms.value.backward();
      const at::Tensor gradient = matrix(expected.at("gradient"));
      const double error = (logits.grad().to(at::kDouble) - gradient).abs().max().item<double>();
      EXPECT_LE(error, tolerance);
    }
  }
};

TEST_F(LossReference, AgreesWithPyTorch) {
  expect_agreement(at::kDouble, 1e-12);
}

TEST_F(LossReference, AgreesWithPyTorchInSinglePrecision) {
  expect_agreement(at::kFloat, 3e-6);
}

TEST_F(LossReference, HoldsEveryLoss) {
  std::set<std::string_view> known;
  for (const auto& entry : loss_registry()) {
    // Those that compare two answers have tests of their own.
    const LossNeeds needs = make_loss(entry.name)->needs();
    if (!needs.teacher && needs.view == SecondLook::kNone) known.insert(entry.name);
  }
  std::set<std::string> seen;
  for (const auto& expected : cases) {
    seen.insert(Spec::parse(expected.at("loss").get<std::string>()).name);
  }
  EXPECT_EQ(known, std::set<std::string_view>(seen.begin(), seen.end()));
}

TEST_F(LossReference, HoldsNoneSomeAndAllConfident) {
  std::set<std::string> kinds;
  for (const auto& expected : cases) {
    if (expected.at("loss") != "pseudo_label") continue;
    const std::size_t count = expected.at("confident"), all = expected.at("logits").size();
    kinds.insert(count == 0 ? "none" : count == all ? "all" : "some");
  }
  EXPECT_EQ(kinds.size(), 3u);
}

}  // namespace
}  // namespace gala
