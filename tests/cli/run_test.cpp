#include <sys/resource.h>

#include "tests/cli/run_command.h"

namespace gala::test {
namespace {

namespace fs = std::filesystem;

// Two seeds of Source, and of two methods with two losses.
constexpr std::size_t kRuns = 2 + 2 * 2 * 2;

TEST_F(RunCommand, MakesRecordsOnceAndPrintsTheirTable) {
  const Ending first = run("run plan.toml --store store");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_CONTAINS(first.err, "plan    try: A try");
  EXPECT_CONTAINS(first.err, fmt::format("runs    {}, of them {} to do", kRuns, kRuns));
  EXPECT_CONTAINS(first.out, "forgetting");
  EXPECT_CONTAINS(first.out, "Random");
  const auto made = records("store");
  EXPECT_EQ(made.size(), kRuns);
  const std::string before = read("store/records.jsonl");
  const Ending second = run("run plan.toml --store store");
  EXPECT_EQ(second.code, 0);
  EXPECT_CONTAINS(second.err, "0 to do");
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(read("store/records.jsonl"), before);
  for (const auto& line : read_json_lines("store/records.jsonl")) {
    EXPECT_EQ(line.at("provenance").at("command").get<std::string>(),
              "gala run plan.toml --store store");
    EXPECT_NE(line.at("provenance").at("commit").get<std::string>(), "");
    EXPECT_EQ(line.at("labels").at("plan").get<std::string>(), "try");
  }
}

TEST_F(RunCommand, ADryRunSeesThatTheStoreIsAFile) {
  write("store", "");
  for (const char* dry : {"", " --dry-run"}) {
    const Ending ending = run(std::string("run plan.toml --store store") + dry);
    EXPECT_EQ(ending.code, 2) << dry;
    EXPECT_CONTAINS(ending.err, "is a file, not the folder of a store");
  }
}

TEST_F(RunCommand, PrintsTheRunsOfThePlanAsItIsNow) {
  const auto with_rates = [&](const std::string& rates) {
    std::string text = read("plan.toml");
    text.insert(text.find("[run]"), "hyper = [\"rate\"]\n");
    text.insert(text.find("batch_size"), "optimizer = \"sgd:rate={rate}\"\n");
    text.insert(text.find("seed = ["), "rate = [" + rates + "]\n");
    write("rates.toml", text);
    return run("run rates.toml --store store --only row=Random --only seed=0 --only loss=shot");
  };
  const Ending slow = with_rates("1e-5"), fast = with_rates("0.5"), both = with_rates("1e-5, 0.5");
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(fast.out.find("rate=1e-05"), std::string::npos) << fast.out;
  EXPECT_CONTAINS(fast.out, "rate=0.5");
  EXPECT_EQ(with_rates("1e-5").out, slow.out);
}

TEST_F(RunCommand, ReportsWhatWasMadeAndSaysWhatItLeavesOut) {
  ASSERT_EQ(run("run plan.toml --store store --only row=Source").code, 0);
  const Ending whole = run("report store --format md");
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_CONTAINS(whole.out, "Source");
  EXPECT_EQ(whole.err, "");
  const std::string lines = read("store/records.jsonl");
  write("store/records.jsonl", lines + lines.substr(0, 100));
  const Ending torn = run("report store --format md");
  EXPECT_EQ(torn.code, 0) << torn.err;
  EXPECT_EQ(torn.out, whole.out);
  EXPECT_CONTAINS(torn.err, "line 3 is not whole");
}

TEST_F(RunCommand, ADryRunSaysWhatMayBeWrongToo) {
  ASSERT_EQ(run("run plan.toml --store store --only row=Source").code, 0);
  const std::string lines = read("store/records.jsonl");
  write("store/records.jsonl", lines + lines.substr(0, 100));
  // The demo's weights, as if they had learned another order of the classes.
  std::string weights = read(GALA_TEST_ASSETS "/wrn16_2_cifar10.safetensors");
  const std::size_t name = weights.find("airplane");
  ASSERT_NE(name, std::string::npos);
  weights[name] = 'A';
  write("other.safetensors", weights);
  std::string plan = read("plan.toml");
  plan.replace(plan.find("model = "), plan.find("batch_size") - plan.find("model = "),
               "weights = \"other.safetensors\"\n");
  write("other.toml", plan);
  const Ending dry = run("run other.toml --store store --dry-run --only seed=0");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_CONTAINS(dry.err, "line 3 is not whole");
  const std::string warning = "class 0 is \"airplane\" in the data and \"Airplane\" in the weights";
  EXPECT_CONTAINS(dry.err, warning);
  EXPECT_EQ(dry.err.find(warning), dry.err.rfind(warning));
}

TEST_F(RunCommand, RecordsNoFoldersOfOneMachine) {
  const std::string rest = " --only row=Source --only seed=0";
  ASSERT_EQ(
      run("run " + path("plan.toml").string() + " --store=" + path("store").string() + "/" + rest)
          .code,
      0);
  const auto lines = read_json_lines("store/records.jsonl");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0].at("provenance").at("command").get<std::string>(),
            "gala run plan.toml --store=store" + rest);
}

TEST_F(RunCommand, PrintsRowsInThePlansOrderHoweverTheyWereMade) {
  ASSERT_EQ(run("run plan.toml --store store --only row=GALA").code, 0);
  const Ending whole = run("run plan.toml --store store");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::size_t source = whole.out.find("\nSource"), gala = whole.out.find("\nGALA");
  ASSERT_NE(source, std::string::npos);
  ASSERT_NE(gala, std::string::npos);
  EXPECT_LT(source, gala);
}

TEST_F(RunCommand, PrecisionLayoutAndDeterminismAreTheMachines) {
  const std::string one =
      "run plan.toml --only row=GALA --only loss=shot --only seed=0 --store store";
  ASSERT_EQ(run(one).code, 0);
  const Ending other = run(one + " --precision bf16 --layout channels_last --deterministic");
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_CONTAINS(other.err, "1 to do");
  std::vector<std::string> found;
  for (const auto& line : read_json_lines("store/records.jsonl")) {
    found.push_back(line.at("spec").at("precision").get<std::string>() + " " +
                    line.at("provenance").at("layout").get<std::string>() +
                    (line.at("provenance").at("deterministic").get<bool>() ? " fixed" : ""));
  }
  EXPECT_EQ(found, (std::vector<std::string>{"float32 contiguous", "bf16 channels_last fixed"}));

  for (const auto& [flag, answer] :
       {std::pair{"--precision half", "float32|tf32|bf16"},
        std::pair{"--precision tf32", "needs --device cuda"},
        std::pair{"--layout sideways", "auto|contiguous|channels_last|fastest"}}) {
    const Ending refused = run(one + " " + flag);
    EXPECT_EQ(refused.code, 2) << flag;
    EXPECT_CONTAINS(refused.err, answer);
  }
}

TEST_F(RunCommand, SaysWhenARecordedRunLacksTheTraceThatIsAskedFor) {
  std::string silent = read("plan.toml");
  silent.erase(silent.find("trace = true"), std::string("trace = true").size());
  write("silent.toml", silent);
  const std::string rest = " --only row=GALA --only loss=shot --store store";
  ASSERT_EQ(run("run silent.toml" + rest).code, 0);
  EXPECT_CONTAINS(run("run plan.toml" + rest).err, "2 of the recorded runs have no trace");
}

TEST_F(RunCommand, GoesOnAfterBeingKilled) {
  ASSERT_EQ(run("run plan.toml --store whole --threads 1 --quiet").code, 0);
  for (const std::size_t lines : {1u, 3u, 6u}) {
    const Ending killed = stop_after(lines, SIGKILL, "run plan.toml --store store --threads 1");
    EXPECT_EQ(killed.signal, SIGKILL);
  }
  EXPECT_LT(records("store").size(), kRuns);
  const Ending rest = run("run plan.toml --store store --threads 1 --quiet");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(records("store"), records("whole"));
}

TEST_F(RunCommand, StopsCleanlyAtASignal) {
  const Ending stopped = stop_after(2, SIGINT, "run plan.toml --store store");
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_CONTAINS(stopped.err, "runs were recorded; the same command makes the others");
  const std::size_t made = records("store").size();
  EXPECT_GE(made, 2u);
  EXPECT_LT(made, kRuns);
  const Ending rest = run("run plan.toml --store store");
  EXPECT_EQ(rest.code, 0);
  EXPECT_EQ(records("store").size(), kRuns);
  EXPECT_FALSE(fs::exists(path("store/torn")));
}

TEST_F(RunCommand, JobsDoNotChangeTheRecords) {
  ASSERT_EQ(run("run plan.toml --store one --threads 1 --jobs 1").code, 0);
  const Ending two = run("run plan.toml --store two --threads 1 --jobs 3");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(records("one"), records("two"));
}

TEST_F(RunCommand, TwoProgramsAtOnceMakeNoDoubles) {
  const auto plan = words("run plan.toml --store store --threads 1");
  const pid_t first = start(plan, "", -1), second = start(plan, "", -1);
  EXPECT_EQ(wait_for(first).code, 0);
  EXPECT_EQ(wait_for(second).code, 0);
  EXPECT_EQ(records("store").size(), kRuns);
}

TEST_F(RunCommand, ShardsMakeThePlanTogether) {
  const pid_t first = start(words("run plan.toml --store store --threads 1 --shard 1/2"), "", -1);
  const pid_t second = start(words("run plan.toml --store store --threads 1 --shard 2/2"), "", -1);
  EXPECT_EQ(wait_for(first).code, 0);
  EXPECT_EQ(wait_for(second).code, 0);
  ASSERT_EQ(run("run plan.toml --store whole --threads 1").code, 0);
  EXPECT_EQ(records("store"), records("whole"));
  EXPECT_CONTAINS(run("run plan.toml --store store --shard 3/2").err, "expected I/N");
}

TEST_F(RunCommand, ADryRunShowsTheRunsAndMakesNone) {
  const Ending dry = run("run plan.toml --store store --dry-run");
  ASSERT_EQ(dry.code, 0) << dry.err;
  EXPECT_CONTAINS(dry.out, "to do  GALA, loss=shot, seed=1");
  EXPECT_CONTAINS(dry.out, fmt::format("{} to do (1,000 images)", kRuns));
  EXPECT_CONTAINS(dry.out, "no record of these networks");
  EXPECT_FALSE(fs::exists(path("store")));
  ASSERT_EQ(run("run plan.toml --store store --only row=GALA").code, 0);
  const Ending later = run("run plan.toml --store store --dry-run");
  EXPECT_CONTAINS(later.out, "recorded  GALA, loss=shot, seed=1");
  EXPECT_CONTAINS(later.out, "time: about ");
  EXPECT_EQ(records("store").size(), 4u);
}

TEST_F(RunCommand, ARunOfTwoPlansIsMadeOnce) {
  ASSERT_EQ(run("run plan.toml --store store").code, 0);
  std::string other = read("plan.toml");
  other.replace(other.find("\"try\""), 5, "\"also\"");
  write("other.toml", other);
  const Ending second = run("run other.toml --store store");
  EXPECT_EQ(second.code, 0);
  EXPECT_CONTAINS(second.err, "0 to do");
  EXPECT_CONTAINS(second.err,
                  fmt::format("{} runs of other plans are runs of this one too", kRuns));
  EXPECT_CONTAINS(second.out, "GALA");
  EXPECT_EQ(read_json_lines("store/records.jsonl").size(), 2 * kRuns);
  const std::string before = read("store/records.jsonl");
  EXPECT_EQ(run("run other.toml --store store").code, 0);
  EXPECT_EQ(read("store/records.jsonl"), before);
}

TEST_F(RunCommand, NamesAllProblemsBeforeTheFirstRun) {
  write("bad.toml", R"(
[plan]
name = "bad"
title = "Bad"
[run]
protocol = "continual:path=nowhere,clean=nowhere"
model = "wide_resnet:depth=10,width=1"
weights = "none.safetensors"
[[row]]
name = "a"
[[row]]
name = "b"
protocol = "domainbed:path=neither"
)");
  const auto before = listing();
  const Ending bad = run("run bad.toml --store store");
  EXPECT_EQ(bad.code, 2);
  EXPECT_CONTAINS(bad.err, "3 problems");
  EXPECT_CONTAINS(bad.err, "nowhere is missing; the published arrays go there");
  EXPECT_CONTAINS(bad.err, "none.safetensors is missing");
  EXPECT_CONTAINS(bad.err, "neither");
  EXPECT_EQ(listing(), before) << "nothing is made";
  write("worse.toml", "[plan]\nname = \"x\"\n[run]\nprotcol = \"continual\"\nseed = \"one\"\n");
  const Ending worse = run("run worse.toml --store store");
  EXPECT_EQ(worse.code, 2);
  EXPECT_CONTAINS(worse.err, "did you mean \"protocol\"");
  EXPECT_CONTAINS(worse.err, "seed cannot be \"one\"");
  EXPECT_EQ(run("run none.toml --store store").code, 2);
  EXPECT_EQ(run("run plan.toml").code, 2);
  EXPECT_EQ(run("run plan.toml --store store --jobs 0").code, 2);
  EXPECT_CONTAINS(run("run plan.toml --store store --only rwo=GALA").err, "did you mean \"row\"");
  EXPECT_CONTAINS(run("run plan.toml --store store --device tpu").err, "tpu");
  write("file", "");
  EXPECT_EQ(run("run plan.toml --store file").code, 2);
  EXPECT_EQ(run("run plan.toml --store /dev/null/x").code, 2);
}

TEST_F(RunCommand, AFullDiskStopsItAndLosesNothing) {
  ASSERT_EQ(run("run plan.toml --store store --only row=Source").code, 0);
  const std::string before = read("store/records.jsonl");
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{before.size() + 2000, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const pid_t process = start(words("run plan.toml --store store"), "", -1);
  setrlimit(RLIMIT_FSIZE, &old);
  const Ending full = wait_for(process);
  EXPECT_EQ(full.code, 1);
  EXPECT_CONTAINS(full.err, "cannot be written: File too large");
  EXPECT_EQ(read("store/records.jsonl").substr(0, before.size()), before);
  EXPECT_EQ(run("run plan.toml --store store").code, 0);
  EXPECT_EQ(records("store").size(), kRuns);
}

TEST_F(RunCommand, RefusesAStoreOfANewerProgram) {
  write("store/records.jsonl", "{\"schema\": 99, \"kind\": \"run\"}\n");
  const Ending newer = run("run plan.toml --store store");
  EXPECT_EQ(newer.code, 2);
  EXPECT_CONTAINS(newer.err, "line 1 is of schema 99");
  EXPECT_EQ(read("store/records.jsonl"), "{\"schema\": 99, \"kind\": \"run\"}\n");
}

}  // namespace
}  // namespace gala::test
