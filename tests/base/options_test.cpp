#include "gala/base/options.h"

#include <gtest/gtest.h>

namespace gala {
namespace {

enum class Colour { kRed, kDarkBlue };
constexpr std::array<std::string_view, 2> enum_names(Colour) {
  return {"red", "dark_blue"};
}

struct Example {
  double rate = 1e-3;
  std::int64_t count = 20;
  bool quick = false;
  Colour colour = Colour::kRed;
  std::string pattern = "*";
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("rate", &Example::rate, "how fast");
    option("count", &Example::count, "how many");
    option("quick", &Example::quick, "in a hurry");
    option("colour", &Example::colour, "which");
    option("pattern", &Example::pattern, "what");
  }
};

std::string message_of(const std::string& spec) {
  try {
    parse_options<Example>(Spec::parse(spec), "thing");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Options, AreFilledFromASpec) {
  const auto options = parse_options<Example>(
      Spec::parse("x:rate=5e-05,count=-3,quick=yes,colour=dark_blue,pattern=\"a,b\""), "thing");
  EXPECT_EQ(options.rate, 5e-5);
  EXPECT_EQ(options.count, -3);
  EXPECT_TRUE(options.quick);
  EXPECT_EQ(options.colour, Colour::kDarkBlue);
  EXPECT_EQ(options.pattern, "a,b");
}

TEST(Options, RoundTripThroughTheirSpec) {
  Example options{.rate = 0.1 + 0.2, .count = 7, .quick = true, .colour = Colour::kDarkBlue};
  const Spec spec = Spec::parse(options_to_spec("x", options).to_string());
  EXPECT_EQ(parse_options<Example>(spec, "thing").rate, 0.1 + 0.2);
  EXPECT_EQ(options_to_spec("x", parse_options<Example>(spec, "thing")), spec);
}

TEST(Options, AreUnderstoodByTheNamesTheyHaveElsewhere) {
  EXPECT_EQ(parse_options<Example>(Spec::parse("x:lr=0.5"), "thing").rate, 0.5);
  EXPECT_EQ(parse_options<Example>(Spec::parse("x:learning_rate=0.25"), "thing").rate, 0.25);
  EXPECT_EQ(message_of("x:lr=1,rate=2"),
            "thing x: rate and lr are the same option: give one of them");
  EXPECT_EQ(message_of("x:lr=1,learning_rate=2"),
            "thing x: rate and learning_rate are the same option: give one of them");
  EXPECT_NE(message_of("x:eps=1").find("no option \"eps\""), std::string::npos)
      << "there is no epsilon here";
}

struct Lists {
  std::vector<std::string> names = {};
  std::optional<Colour> colour = {};
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("names", &Lists::names, "several");
    option("colour", &Lists::colour, "one, or none");
  }
};

TEST(Options, MayBeListsAndLeftToOthers) {
  const auto lists = parse_options<Lists>(Spec::parse("x:names=\"a, b\",colour=red"), "thing");
  EXPECT_EQ(lists.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lists.colour, Colour::kRed);
  const auto none = parse_options<Lists>(Spec::parse("x:names=\"\",colour=auto"), "thing");
  EXPECT_TRUE(none.names.empty());
  EXPECT_EQ(none.colour, std::nullopt);
  EXPECT_EQ(options_to_spec("x", lists).to_string(), "x:names=\"a,b\",colour=red");
  EXPECT_EQ(describe_options<Lists>()[1].default_value, "auto");
  EXPECT_EQ(describe_options<Lists>()[1].type, "auto|red|dark_blue");
}

TEST(Options, NameTheNearestForATypo) {
  EXPECT_EQ(message_of("x:rat=1"),
            "thing x has no option \"rat\" (did you mean \"rate\"? known: rate, count, quick, "
            "colour, pattern)");
}

TEST(Options, SayWhatWouldBeAccepted) {
  EXPECT_EQ(message_of("x:colour=green"),
            "thing x: option colour cannot be \"green\" (expected red|dark_blue)");
  for (const char* spec : {"x:rate=fast", "x:rate=nan", "x:rate=inf", "x:count=1.5",
                           "x:quick=maybe", "x:count=99999999999999999999", "x:rate=\"\""}) {
    EXPECT_NE(message_of(spec).find("expected"), std::string::npos) << spec;
  }
}

TEST(Options, AreDescribedWithTheirDefaults) {
  const auto infos = describe_options<Example>();
  ASSERT_EQ(infos.size(), 5u);
  EXPECT_EQ(infos[0].default_value, "0.001");
  EXPECT_EQ(infos[3].type, "red|dark_blue");
}

}  // namespace
}  // namespace gala
