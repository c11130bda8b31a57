// `augment` for given numbers against one written in Python. tools/make_view_fixtures.py makes the
// cases.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gala/view/augment.h"

namespace gala {
namespace {

const std::filesystem::path kCases =
    std::filesystem::path(GALA_TEST_BUILD_DIR) / "fixtures" / "view" / "cases.json";

AugmentDraw draw_from(const nlohmann::json& json) {
  AugmentDraw draw;
  for (std::size_t i = 0; i < draw.order.size(); ++i) {
    draw.order[i] = static_cast<ColourTurn>(json.at("order").at(i).get<int>());
  }
  draw.brightness = json.at("brightness");
  draw.contrast = json.at("contrast");
  draw.saturation = json.at("saturation");
  draw.hue = json.at("hue");
  draw.gamma = json.at("gamma");
  draw.angle = json.at("angle");
  draw.scale = json.at("scale");
  draw.shift_x = json.at("shift_x");
  draw.shift_y = json.at("shift_y");
  draw.sigma = json.at("sigma");
  draw.flip = json.at("flip");
  return draw;
}

at::Tensor tensor_from(const nlohmann::json& json, const nlohmann::json& sizes) {
  return at::tensor(json.get<std::vector<double>>(), at::kDouble)
      .view(sizes.get<std::vector<std::int64_t>>());
}

TEST(AugmentReference, AgreesWithPyTorch) {
  if (!std::filesystem::exists(kCases)) {
    GTEST_SKIP() << "the cases are made by a Python with torch, and there is none";
  }
  nlohmann::json cases;
  std::ifstream(kCases) >> cases;
  ASSERT_GT(cases.size(), 80U);
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.at("what").get<std::string>());
    const auto options = parse_options<AugmentOptions>(
        Spec::parse(expected.at("spec").get<std::string>()), View::kKind);
    const Preprocessing preprocessing = Preprocessing::from_json(expected.at("preprocessing"));
    const at::Tensor images = tensor_from(expected.at("images"), expected.at("sizes"));
    const at::Tensor result =
        augmented(images.to(at::kFloat), draw_from(expected.at("drawn")), options, preprocessing);
    const at::Tensor error =
        (result - tensor_from(expected.at("result"), expected.at("sizes"))).abs();
    const at::Tensor scale = at::tensor(preprocessing.std, at::kDouble).view({1, 3, 1, 1});
    EXPECT_LT((error * scale).max().item<double>(), 1e-5);  // on pixels of 0 to 1
  }
}

}  // namespace
}  // namespace gala
