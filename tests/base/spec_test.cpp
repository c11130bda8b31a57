#include "gala/base/spec.h"

#include <gtest/gtest.h>

#include "gala/base/error.h"

namespace gala {
namespace {

TEST(Spec, ReadsANameAlone) {
  EXPECT_EQ(Spec::parse("all"), (Spec{"all", {}}));
}

TEST(Spec, ReadsOptionsInOrder) {
  const Spec spec = Spec::parse("gala:threshold=0.75,window=20");
  EXPECT_EQ(spec, (Spec{"gala", {{"threshold", "0.75"}, {"window", "20"}}}));
  EXPECT_EQ(*spec.find("window"), "20");
  EXPECT_EQ(spec.find("tie"), nullptr);
}

TEST(Spec, KeepsColonsInsideValues) {
  EXPECT_EQ(*Spec::parse("folder:path=C:/x").find("path"), "C:/x");
}

TEST(Spec, RoundTripsAwkwardValues) {
  for (const std::string value :
       {"", "a,b", "x=y", "say \"hi\"", "back\\slash", "a b", "plain", "ü"}) {
    const Spec spec{"name", {{"first", value}, {"second", "2"}}};
    EXPECT_EQ(Spec::parse(spec.to_string()), spec) << spec.to_string();
  }
}

TEST(Spec, RefusesMalformedText) {
  for (const char* text : {"", ":a=1", "x:", "x:a", "x:=1", "x:a=1,", "x:a=1,a=2", "x:a=\"open",
                           "x:a=\"b\"c", "x:a=b=c", "x,y"}) {
    EXPECT_THROW(Spec::parse(text), ConfigError) << text;
  }
}

TEST(Spec, ExplainsACommaInAValue) {
  const auto said = [](const char* text) -> std::string {
    try {
      Spec::parse(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(said("folder:path=a,b/c").find("double quotes"), std::string::npos);
  EXPECT_NE(said("folder:path=a,b/c").find("'folder:path=\"a,b/c\"'"), std::string::npos)
      << said("folder:path=a,b/c");
  EXPECT_NE(said("arrays:images=x,1.npy,labels=y.npy").find("'arrays:images=\"x,1.npy\",...'"),
            std::string::npos)
      << said("arrays:images=x,1.npy,labels=y.npy");
  EXPECT_EQ(Spec::parse("folder:path=\"a,b/c\"").options[0].second, "a,b/c");
  EXPECT_EQ(said("folder:path").find("double quotes"), std::string::npos);
}

TEST(Specs, AreWrittenWithPlusSignsBetweenThem) {
  const std::vector<Spec> both = parse_specs("restore:share=1e+5+ensemble:source=0.5");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(*both[0].find("share"), "1e+5");
  EXPECT_EQ(both[1].name, "ensemble");
  EXPECT_EQ(parse_specs(to_string(both)), both);
  const std::vector<Spec> one = parse_specs("a:b=\"x+y\"");
  EXPECT_EQ(one.size(), 1u);
  EXPECT_EQ(parse_specs(to_string(one)), one);
  EXPECT_EQ(to_string(both), "restore:share=1e+5+ensemble:source=0.5");
  EXPECT_TRUE(parse_specs("none").empty());
  EXPECT_EQ(to_string(std::vector<Spec>{}), "none");
  EXPECT_THROW(parse_specs("a++b"), ConfigError);
  EXPECT_THROW(parse_specs("+b"), ConfigError);
}

TEST(Specs, SayThatNothingFollowsTheLastPlusSign) {
  for (const char* text : {"a+", "a:b=c+", "a+b+"}) {
    try {
      parse_specs(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("nothing follows the last +"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Nearest, FindsATypoAndNothingForNonsense) {
  EXPECT_EQ(nearest("treshold", {"window", "threshold"}), "threshold");
  EXPECT_EQ(nearest("zzzzzzzzzz", {"window", "threshold"}), "");
}

}  // namespace
}  // namespace gala
