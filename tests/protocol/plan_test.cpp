#include "gala/protocol/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace gala {
namespace {

ExperimentPlan parsed(const std::string& text) {
  Problems problems;
  ExperimentPlan plan = parse_plan(text, "plans/x.toml", problems);
  for (const std::string& problem : problems.list()) ADD_FAILURE() << problem;
  return plan;
}

std::vector<std::string> problems_of(const std::string& text) {
  Problems problems;
  parse_plan(text, "plans/x.toml", problems);
  return problems.list();
}

bool any_has(const std::vector<std::string>& list, const std::string& part) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}
#define EXPECT_ANY(list, part) EXPECT_TRUE(any_has(list, part)) << fmt::format("{}", list)

constexpr char kGrid[] = R"(
[plan]
name = "grid"
title = "A grid"
hyper = ["rate", "inner_steps"]

[run]
protocol = "domainbed:path=data/{dataset},env={env}"
optimizer = "adam:rate={rate}"
seed = "{trial}"

[axes]
dataset = ["PACS", "VLCS"]
env = [0, 1]
trial = [3]
rate = [5e-6, 5e-4]
inner_steps = [1, 3]

[[row]]
name = "ERM"
select = "none"
hyper = []

[[row]]
name = "Block {block}"
select = "fixed:layers=block{block}"
block = [1, 2]
)";

TEST(Plan, LaysOutRowsTimesAxes) {
  const ExperimentPlan plan = parsed(kGrid);
  EXPECT_EQ(plan.name, "grid");
  // 2 sets x 2 environments x 2 rates x 2 inner steps; the second row has two blocks.
  EXPECT_EQ(plan.runs.size(), 16u + 32u);
  const PlannedRun& last = plan.runs.back();
  EXPECT_EQ(last.request.protocol, "domainbed:path=data/VLCS,env=1");
  EXPECT_EQ(last.request.method.at("optimizer"), "adam:rate=0.0005");
  EXPECT_EQ(last.request.method.at("select"), "fixed:layers=block2");
  EXPECT_EQ(last.request.method.at("inner_steps"), "3");
  EXPECT_EQ(last.request.seed, 3);
  EXPECT_EQ(last.labels.row, "Block 2");
  EXPECT_EQ(last.labels.dataset, "VLCS");
  EXPECT_EQ(last.labels.trial, 3);
  EXPECT_EQ(last.labels.hyper.at("rate"), "0.0005");
  EXPECT_EQ(last.describe(), "Block 2, dataset=VLCS, env=1, rate=0.0005, inner_steps=3, block=2");
  EXPECT_TRUE(plan.runs.front().labels.hyper.empty());
  std::set<std::string> names;
  for (const PlannedRun& run : plan.runs) names.insert(run.describe());
  EXPECT_EQ(names.size(), plan.runs.size());
}

TEST(Plan, ThatBreaksTheParserIsNoPlan) {
  for (const char* text : {"[=", "[plan]\n[=]\n", "[[=", "[ # x"}) {
    EXPECT_FALSE(problems_of(text).empty()) << text;
  }
  EXPECT_ANY(problems_of("[="), "is not TOML");
  for (const char* text : {"\xc5\xb8\x03", "[plan]\ntitle = \"cos\"\xce\xb1\n"}) {
    EXPECT_ANY(problems_of(text), "line");
  }
}

/// Small plans that would take all memory or time.
TEST(Plan, RefusesWhatGrowsBeyondMeasure) {
  const std::string head = "[plan]\nname = \"x\"\ntitle = \"X\"\n[run]\nprotocol = \"{a}\"\n";
  // Each refers to the next a hundred times.
  std::string laughs = head;
  for (char name = 'a'; name < 'g'; ++name) {
    laughs += fmt::format("{} = \"", name);
    for (int i = 0; i < 100; ++i) laughs += fmt::format("{{{}}}", static_cast<char>(name + 1));
    laughs += "\"\n";
  }
  EXPECT_ANY(problems_of(laughs + "g = \"ha\"\n[[row]]\nname = \"r\"\n"), "characters");
  EXPECT_ANY(problems_of(head + "a = \"{a}{a}{a}{a}{a}{a}{a}{a}\"\n"),
             "a has more than 10000 characters");
  EXPECT_ANY(problems_of(head + "a = \"{a}\"\n"), "a refers to itself");
  EXPECT_ANY(problems_of(head + "a = \"" + std::string(10'001, 'x') + "\"\n"),
             "more than 10000 characters");
  std::string wide = head + "a = \"" + std::string(9'000, 'x') + "\"\nmodel = [";
  for (int i = 0; i < 50'000; ++i) wide += "1,";
  EXPECT_ANY(problems_of(wide + "]\n"), "more than 100000000 characters");
  // Sixty-four pairs are 2^64 runs, which is 0 in a counter of 64 bits.
  std::string pairs = head + "a = \"x\"\n";
  for (int i = 0; i < 64; ++i) pairs += fmt::format("n{} = [1, 2]\n", i);
  EXPECT_ANY(problems_of(pairs), "more than 100000 runs");
  std::string crossed = head + "a = \"x\"\n";
  for (int i = 0; i < 10'000; ++i) crossed += "[[case]]\n[[row]]\nname=\"r\"\n";
  EXPECT_ANY(problems_of(crossed), "more than 100000 runs");
}

TEST(Plan, CasesSetSeveralNamesTogether) {
  const ExperimentPlan plan = parsed(R"(
[plan]
name = "cases"
title = "Cases"
[run]
norm = "batch"
[[case]]
dataset = "A"
protocol = "continual:path=a"
[[case]]
dataset = "B"
protocol = "continual:path=b"
[[row]]
name = "Source"
norm = "source"
[[row]]
name = "GALA"
)");
  ASSERT_EQ(plan.runs.size(), 4u);
  EXPECT_EQ(plan.runs[0].request.method.at("norm"), "source");
  EXPECT_EQ(plan.runs[1].request.method.at("norm"), "batch");
  EXPECT_EQ(plan.runs[3].request.protocol, "continual:path=b");
  EXPECT_EQ(plan.runs[3].labels.dataset, "B");
}

TEST(Plan, RowsOfDifferentGroupsAreToldApart) {
  const ExperimentPlan plan = parsed(R"(
[plan]
name = "groups"
title = "Groups"
[run]
protocol = "continual"
optimizer = "adam:rate={rate}"
rate = [1e-4, 1e-3]
[[row]]
name = "{rate}"
group = "GALA"
[[row]]
name = "{rate}"
group = "All"
select = "all"
)");
  ASSERT_EQ(plan.runs.size(), 4u);
  EXPECT_EQ(plan.runs[0].describe(), "GALA: 0.0001, rate=0.0001");
  EXPECT_EQ(plan.runs[3].describe(), "All: 0.001, rate=0.001");
}

TEST(Plan, WithoutRowsIsOneRow) {
  const ExperimentPlan plan = parsed(
      "[plan]\nname = \"x\"\ntitle = \"One\"\n[run]\nprotocol = \"continual\"\nepisodic = true\n");
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].labels.row, "One");
  EXPECT_EQ(plan.runs[0].request.method.at("episodic"), "yes");
}

TEST(Plan, OfAHeadingAloneHasNoRuns) {
  EXPECT_TRUE(parsed("[plan]\nname = \"x\"\ntitle = \"A figure\"\n").runs.empty());
}

TEST(Plan, NamesAllProblemsAtOnce) {
  const auto problems = problems_of(R"(
[plan]
nam = "x"
title = 3
[run]
protocol = "continual"
lose = "shot"
batch_size = "many"
[axes]
rate = []
when = 1979-05-27
optimizer = "adam:rate={raet}"
[[row]]
select = "gala"
[extra]
)");
  EXPECT_ANY(problems, "[plan] has no key \"nam\" (did you mean \"name\"?");
  EXPECT_ANY(problems, "plan.title must be a text");
  EXPECT_ANY(problems, "plan.name is missing");
  EXPECT_ANY(problems, "line 7: \"lose\" is no key of a run, and nothing refers to it as {lose}");
  EXPECT_ANY(problems, "batch_size cannot be \"many\" (expected integer)");
  EXPECT_ANY(problems, "axes.rate must be a list");
  EXPECT_ANY(problems, "axes.when must be a text");
  EXPECT_ANY(problems, "{raet} refers to nothing in the plan");
  EXPECT_ANY(problems, "row.name is missing");
  EXPECT_ANY(problems, "a plan has no section \"extra\"");
}

TEST(Plan, WithoutRowsSaysThatTheyAreMissing) {
  const std::vector<std::string> problems = problems_of("[run]\nprotocol = \"continual\"\n");
  EXPECT_ANY(problems, "the sections [[row]] are missing");
  for (const std::string& problem : problems) {
    EXPECT_EQ(problem.find("line 0"), std::string::npos) << problem;
  }
}

TEST(Plan, KnowsTheLinesAndTheOrderOfRows) {
  const std::string head = "[plan]\nname = \"x\"\ntitle = \"x\"\n[run]\nprotocol = \"continual\"\n";
  EXPECT_ANY(problems_of(head + "[[row]]\nname = 5\n"), "line 6: row.name must be a text");
  EXPECT_ANY(problems_of(head + "[[row]]\nname = \"a\"\nlose = 1\n"), "line 8: \"lose\"");
  const ExperimentPlan plan =
      parsed(head + "[[row]]\nname = \"a\"\nseed = [0, 1]\nloss = [\"shot\", \"entropy\"]\n");
  ASSERT_EQ(plan.runs.size(), 4u);
  EXPECT_EQ(plan.runs[0].request.seed, 0);
  EXPECT_EQ(plan.runs[1].request.seed, 0) << "the last list of the file turns fastest";
  EXPECT_EQ(plan.runs[1].request.method.at("loss"), "entropy");
}

TEST(Plan, ANameMayReferThroughOthersButNotToItself) {
  const std::string head =
      "[plan]\nname = \"x\"\ntitle = \"x\"\n[run]\nprotocol = \"continual\"\nloss = \"{a}\"\n"
      "a = \"{b}\"\nb = \"{c}\"\nc = ";
  EXPECT_EQ(parsed(head + "\"shot\"\n").runs.at(0).request.method.at("loss"), "shot");
  EXPECT_ANY(problems_of(head + "\"{a}\"\n"), "refers to itself");
}

TEST(Plan, SaysWhereItsSyntaxIsWrong) {
  EXPECT_ANY(problems_of("[plan]\nname = \n"), "line 2: ");
  EXPECT_ANY(problems_of("run = 3\n[plan]\nname = \"x\""), "run must be a section");
  EXPECT_ANY(problems_of("[plan]\nname = \"x\"\n[run]\n[row]\nname = \"y\""),
             "row must be sections: [[row]]");
  EXPECT_ANY(problems_of("[plan]\nname = \"x\"\nhyper = [\"rate\"]\n[run]\nseed = 1"),
             "the hyper-parameter \"rate\" is not in the plan");
}

TEST(Plan, RefusesTooManyRuns) {
  std::vector<int> numbers(400);
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::string list = fmt::format("[{}]", fmt::join(numbers, ","));
  const std::string text = fmt::format(
      "[plan]\nname = \"x\"\n[run]\nloss = \"{{a}}{{b}}\"\n[axes]\na = {}\nb = {}\n", list, list);
  EXPECT_ANY(problems_of(text), "more than 100000 runs");
}

TEST(Plan, KeepsOnlyWhatIsAskedFor) {
  ExperimentPlan plan = parsed(kGrid);
  keep_only(plan, {{"dataset", "PACS"}, {"env", "0"}, {"env", "1"}, {"row", "ERM"}});
  EXPECT_EQ(plan.runs.size(), 8u);
  const auto message = [&](const std::string& name, const std::string& value) {
    try {
      keep_only(plan, {{name, value}});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message("datset", "PACS").find("did you mean \"dataset\""), std::string::npos);
  EXPECT_NE(message("dataset", "PACX").find("no run has this value"), std::string::npos);
}

}  // namespace
}  // namespace gala
