#include <fmt/format.h>

#include <sstream>

#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

using Demo = GalaProgram;

TEST_F(Demo, ShowsWhatItMeasured) {
  const Ending ending = run("demo --images 100 --quiet --out shown");
  ASSERT_EQ(ending.code, 0) << ending.err;
  EXPECT_EQ(ending.err, "");
  const auto demo = nlohmann::json::parse(read("shown/demo.json"));
  ASSERT_EQ(demo.at("runs").size(), 4U);

  // The error of an adapting copy is that of its own trace.
  for (const auto& run : demo.at("runs")) {
    if (run.at("select") == "none") continue;
    std::int64_t correct = 0;
    const auto steps =
        read_json_lines("shown/" + run.at("name").get<std::string>() + ".trace.jsonl");
    ASSERT_EQ(steps.size(), 5U);
    for (const auto& step : steps) correct += step.at("correct").get<std::int64_t>();
    EXPECT_NEAR(run.at("error").at("all").get<double>(), 1 - static_cast<double>(correct) / 500,
                1e-12);
  }
  // The same program without the demo around it: the source model on the same images.
  const Ending plain =
      run("adapt --select none --batch-size 100 --quiet --weights " GALA_TEST_ASSETS
          "/wrn16_2_cifar10.safetensors --data "
          "cifar10c:generate=yes,corruption=fog,path=" GALA_TEST_ASSETS
          "/cifar10_test_2000.png --predictions answers.csv");
  ASSERT_EQ(plain.code, 0) << plain.err;
  std::istringstream answers(read("answers.csv"));
  std::string line;
  std::getline(answers, line);
  int wrong = 0;
  for (int i = 0; i < 100 && std::getline(answers, line); ++i) {
    const std::size_t first = line.find(','), second = line.find(',', first + 1);
    wrong += line.substr(first + 1, second - first - 1) != line.substr(line.rfind(',') + 1);
  }
  EXPECT_NEAR(demo.at("runs").at(0).at("error").at("fog").get<double>(), wrong / 100.0, 1e-12);
  EXPECT_EQ(read("shown/demo.txt"), ending.out.substr(0, read("shown/demo.txt").size()));
}

TEST_F(Demo, EndsInAPageWithTheSameNumbers) {
  const Ending ending = run("demo --images 100 --quiet --out shown");
  ASSERT_EQ(ending.code, 0) << ending.err;
  if (!std::filesystem::exists(path("shown/report.html"))) {
    EXPECT_CONTAINS(ending.out, "There is no page to look at");
    return;
  }
  EXPECT_CONTAINS(ending.out, "report.html");
  const std::string page = read("shown/report.html");
  const auto demo = nlohmann::json::parse(read("shown/demo.json"));
  const std::vector<std::string> lines = ending.out_lines();
  for (std::size_t i = 0; i < demo.at("runs").size(); ++i) {
    // Each row of the terminal is, number for number, a row of the page.
    const std::string name = demo.at("runs")[i].at("name");
    for (const auto& [domain, error] : demo.at("runs")[i].at("error").items()) {
      const std::string number = fmt::format("{:.1f}", 100 * error.get<double>());
      EXPECT_CONTAINS(lines.at(i + 1), number);
      const std::size_t link = page.find(fmt::format("href=\"#run/{}\">{}</a>", name, number));
      EXPECT_NE(link, std::string::npos) << name << ' ' << domain;
    }
  }
}

TEST_F(Demo, RefusesWhatItCannotShow) {
  EXPECT_EQ(run("demo --images 0").code, 2);
  EXPECT_EQ(run("demo --images 2001").code, 2);
  EXPECT_EQ(run("demo --assets nowhere").code, 2);
  EXPECT_EQ(run("demo --loss nothing").code, 2);
  EXPECT_EQ(run("demo --out /dev/null/x").code, 2);
  EXPECT_TRUE(listing().empty());
  EXPECT_FALSE(std::filesystem::exists(path("gala-demo")));
}

}  // namespace
}  // namespace gala::test
