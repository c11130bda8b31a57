#include "tests/cli/run_command.h"

namespace gala::test {
namespace {

/// A store with runs of two rows, which can be paired.
class ReportCommand : public RunCommand {
 protected:
  void SetUp() override {
    const Ending ending =
        run("run plan.toml --store store --only row=GALA --only row=Random --only loss=shot");
    ASSERT_EQ(ending.code, 0) << ending.err;
  }

  /// Exit code 2, one line with these words, and nothing written.
  void refuses(const std::string& arguments, const std::vector<std::string>& parts) {
    const auto before = listing();
    const Ending ending = run("report store " + arguments);
    EXPECT_EQ(ending.code, 2) << arguments << "\n" << ending.err;
    EXPECT_EQ(ending.out, "") << arguments;
    EXPECT_EQ(ending.err_lines().size(), 1U) << arguments << "\n" << ending.err;
    for (const std::string& part : parts) EXPECT_CONTAINS(ending.err, part);
    EXPECT_TRUE(before == listing()) << arguments << " left something behind";
  }
};

TEST_F(ReportCommand, ComparesTwoRows) {
  for (const char* format : {"md", "latex", "csv", "json"}) {
    const Ending ending = run(std::string("report store --compare GALA Random --format ") + format);
    ASSERT_EQ(ending.code, 0) << format << "\n" << ending.err;
    EXPECT_CONTAINS(ending.out, "GALA");
    EXPECT_CONTAINS(ending.out, "Random");
  }
  const auto tables =
      nlohmann::json::parse(run("report store --compare GALA Random --format json").out);
  const std::string text = tables.dump();
  EXPECT_CONTAINS(text, "GALA beside Random");
  EXPECT_EQ(text.find("Summary"), std::string::npos) << "only the comparison";
}

TEST_F(ReportCommand, SaysHowAComparisonIsAskedFor) {
  refuses("--format md --compare GALA", {"--compare needs two rows"});
  refuses("--format md --compare", {"--compare"});
  refuses("--format md --compare GALA Random Source", {"--compare takes 2 words at most"});
  refuses("--format md --compare GALA Randm", {"there is no row \"Randm\"", "\"Random\""});
  for (const char* format : {"", "--format html ", "--format svg "}) {
    refuses(std::string(format) + "--compare GALA Random",
            {"--compare needs --format md, latex, csv or json"});
  }
  refuses("--format md --compare GALA Random --table table1",
          {"--compare: the rows cannot be paired in table1"});
}

}  // namespace
}  // namespace gala::test
