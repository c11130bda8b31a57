#include "gala/base/json.h"

#include <gtest/gtest.h>

#include <string>

#include "gala/base/error.h"

namespace gala {
namespace {

std::string nested(int depth, const std::string& inner = "") {
  return std::string(depth, '[') + inner + std::string(depth, ']');
}

TEST(Json, OfAFileIsNotNestedBeyondMeasure) {
  EXPECT_EQ(parse_json(nested(kDeepestJson, "7")).dump(), nested(kDeepestJson, "7"));
  EXPECT_THROW(parse_json(nested(kDeepestJson + 1)), Error);
  EXPECT_TRUE(try_parse_json(nested(kDeepestJson + 1)).is_discarded());
  // So deep that copying it would fill the stack.
  EXPECT_THROW(parse_json(R"({"a":)" + nested(1'000'000) + "}"), Error);
  EXPECT_THROW(parse_json(std::string(1'000'000, '[')), Error);
}

TEST(Json, BracketsInTextsDoNotCount) {
  const std::string text = "[\"" + std::string(1000, '[') + R"(\"{{{\\", "]"])";
  EXPECT_EQ(parse_json(text).size(), 2u);
  EXPECT_TRUE(try_parse_json("{]").is_discarded());
  EXPECT_TRUE(try_parse_json("").is_discarded());
  EXPECT_THROW(parse_json("{]"), nlohmann::json::exception);
  // One after the other is not within each other.
  std::string list = "[[]";
  for (int i = 0; i < 1000; ++i) list += ",[]";
  EXPECT_EQ(parse_json(list + "]").size(), 1001u);
}

TEST(Json, CountsAreNumbersThatSumsCanHold) {
  EXPECT_EQ(count_from(0), 0);
  EXPECT_EQ(count_from(1'000'000'000'000), 1'000'000'000'000);
  for (const char* text : {"-1", "1000000000001", "1e300", "-0.5", "18446744073709551615"}) {
    EXPECT_THROW(count_from(nlohmann::json::parse(text)), Error) << text;
  }
  EXPECT_THROW(count_from("7"), nlohmann::json::exception);
}

}  // namespace
}  // namespace gala
