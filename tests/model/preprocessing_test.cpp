#include "gala/model/preprocessing.h"

#include <gtest/gtest.h>

#include <limits>

#include "gala/base/error.h"

namespace gala {
namespace {

using nlohmann::json;

TEST(Preprocessing, ImagenetHasThePublishedNumbers) {
  const auto value = Preprocessing::imagenet();
  EXPECT_EQ(value.mean, (std::array<double, 3>{0.485, 0.456, 0.406}));
  EXPECT_EQ(value.std, (std::array<double, 3>{0.229, 0.224, 0.225}));
  EXPECT_EQ(value.size, 224);
  EXPECT_EQ(value.interpolation, "bilinear");
  EXPECT_EQ(value.channels, "rgb");
}

TEST(Preprocessing, ReadsAJsonObject) {
  const auto value = Preprocessing::from_json(json::parse(
      R"({"mean":[0,0.5,-1],"std":[1,2,0.25],"size":32,"interpolation":"bicubic","channels":"bgr"})"));
  EXPECT_EQ(value.mean, (std::array<double, 3>{0, 0.5, -1}));
  EXPECT_EQ(value.std, (std::array<double, 3>{1, 2, 0.25}));
  EXPECT_EQ(value.size, 32);
  EXPECT_EQ(value.interpolation, "bicubic");
  EXPECT_EQ(value.channels, "bgr");
}

TEST(Preprocessing, SurvivesTextExactly) {
  auto value = Preprocessing::imagenet();
  value.mean = {1.0 / 3, 0.1, 1e-17};
  value.size = 331;
  const std::string text = value.to_json().dump();
  EXPECT_EQ(Preprocessing::from_json(json::parse(text)), value);
}

TEST(Preprocessing, RefusesMissingFields) {
  for (const char* name : {"mean", "std", "size", "interpolation", "channels"}) {
    json object = Preprocessing::imagenet().to_json();
    object.erase(name);
    try {
      Preprocessing::from_json(object);
      ADD_FAILURE() << name;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string(name) + "\" is missing"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(Preprocessing, RefusesWrongValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<const char*, json>> wrong = {
      {"mean", json::array({0, 0})},
      {"mean", json::array({0, 0, 0, 0})},
      {"mean", json::array({0, "0", 0})},
      {"mean", json::array({0, infinity, 0})},
      {"mean", 0.5},
      {"std", json::array({1, 0, 1})},
      {"std", json::array({1, -1, 1})},
      {"std", json::array({1, infinity, 1})},
      {"std", json::array({1, std::numeric_limits<double>::quiet_NaN(), 1})},
      {"size", 0},
      {"size", -1},
      {"size", 32.0},
      {"size", "32"},
      {"size", 16385},
      {"size", std::numeric_limits<std::uint64_t>::max()},
      {"interpolation", "lanczos"},
      {"interpolation", 2},
      {"channels", "RGB"},
      {"channels", nullptr},
      {"crop", 224}};
  for (const auto& [name, value] : wrong) {
    json object = Preprocessing::imagenet().to_json();
    object[name] = value;
    EXPECT_THROW(Preprocessing::from_json(object), ConfigError) << name << " = " << value.dump();
  }
  EXPECT_THROW(Preprocessing::from_json(json::array()), ConfigError);
}

}  // namespace
}  // namespace gala
