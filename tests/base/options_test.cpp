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
